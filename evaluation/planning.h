// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_PLANNING_H_
#define PERSEUS_EVALUATION_PLANNING_H_

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// Shares of the effort asked for: plans that a table shows are searched for
// longer than those of which there is one a point of a curve.
inline constexpr double kHeadlineEffort = 5;
inline constexpr double kCurveEffort = 1;

// 1F1B without communication, as the paper emulates it, one stage a rank.
Result<CostedPipeline> PipelineFor(Profile profile, int microbatches, int tensor_parallel,
                                   double blocking_power_watts);

double SavingPercent(double baseline_joules, double joules);

// With waiting until `seconds`; none where the plan is later.
double EnergyUntil(const Plan& plan, double seconds, double waiting_watts);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_PLANNING_H_
