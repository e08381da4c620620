// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_BOUND_PLAN_BOUND_H_
#define PERSEUS_PLAN_BOUND_PLAN_BOUND_H_

#include <optional>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::plan {

// By how much a bound may pass a plan's energy, as a share of what they are summed from: rounding.
inline constexpr double kBoundRounding = 1e-9;

// How far the energy of a realised plan lies above a bound; 0 where the bound
// is rounding.
double GapPercent(const CostedPipeline& pipeline, const Plan& plan, double bound_joules);

// What no plan within the constraints that ends by a plan's requested time
// undercuts in effective energy (-infinity: nothing is known), as a bound at
// the plan's realised time. Precondition: its other figures are filled in.
std::optional<SharedKnobBound> SharedKnobBoundOf(const CostedPipeline& pipeline, const Plan& plan,
                                                 double effective_joules, bool proven_best);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_BOUND_PLAN_BOUND_H_
