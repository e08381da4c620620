// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_FIGURES_H_
#define PERSEUS_PLAN_FIGURES_H_

#include <functional>
#include <optional>

#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/plan.h"
#include "perseus/result.h"

namespace perseus::plan {

// A solved frontier in the units of the user: waiting included, both ends as
// Replay() adds them up, points with names found.
Frontier MakeFrontier(const TimeCostFrontier& solved, const CostedPipeline& pipeline,
                      double slope_quantum, double fastest_seconds, double tstar_seconds);

// The cost of a frontier with slopes rounded to a quantum (0: exact).
using EstimateOf = std::function<FrontierEstimate(double slope_quantum)>;

// `quantum`, doubled while the frontier would take minutes and there is
// something to gain.
double CoarsenUntilQuick(double quantum, const EstimateOf& estimate_of);

// Errors: kOverflow where the frontier would take hours, or more memory than
// most machines have.
Result<void> CheckFrontierEffort(int computations, const FrontierEstimate& estimate);

// By how much a bound may pass a plan's energy, as a share of what they are summed from: rounding.
inline constexpr double kBoundRounding = 1e-9;

// How far the energy of a plan lies above a bound; 0 where the bound
// is rounding.
double GapPercent(const CostedPipeline& pipeline, const Plan& plan, double bound_joules);

// A bound on plans within the constraints that end by a plan's requested time, at the plan's
// achieved time. None undercuts `effective_joules` (-infinity: nothing is known). Precondition: the
// plan's other figures are filled in.
std::optional<SharedKnobBound> SharedKnobBoundOf(const CostedPipeline& pipeline, const Plan& plan,
                                                 double effective_joules, bool proven_best);

// Fills in the figures of a plan from its options, which are the pipeline's: all but the requested
// time and the bound of shared knobs. `bound` is the lower bound; the saving is against
// `baseline_joules`, and 0 where that is.
void FillFigures(const CostedPipeline& pipeline, const Frontier& bound, double baseline_joules,
                 Plan* plan);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_FIGURES_H_
