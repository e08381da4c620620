// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_PLAN_SEARCH_H_
#define PERSEUS_PLAN_PLAN_SEARCH_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/result.h"

namespace perseus::plan {

// Above so many computations the exact walk takes minutes.
inline constexpr int kCoarseComputations = 20000;

// One option for every computation, so that the pipeline ends by `seconds` at
// little energy: walks the frontier to that time, then searches
// (option_search.h) from the durations found there; where knobs are shared see
// grouped_plan.h. Slopes are rounded to `slope_quantum` only beyond
// kCoarseComputations. Errors: kInfeasible where nothing was found; those of the
// integer arithmetic.
Result<std::vector<CostOption>> SearchPlan(const CostedPipeline& costs, double slope_quantum,
                                           double seconds, const PlanConstraints& constraints,
                                           double effort);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_PLAN_SEARCH_H_
