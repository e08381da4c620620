// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_TIME_COST_PROBLEM_H_
#define PERSEUS_PLAN_SEARCH_TIME_COST_PROBLEM_H_

#include <cstddef>
#include <vector>

#include "frontier/network.h"
#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/result.h"
#include "plan/cost_options.h"
#include "plan/search/option_search.h"

namespace perseus::plan {

// The pipeline as the solver takes it: one curve for each table, time in
// (guarded) seconds, cost in effective joules.
Result<TimeCostProblem> MakeTimeCostProblem(const CostedPipeline& pipeline, const Guard& guard);

// The same with each table replaced by the exponential curve of the paper,
// sampled densely. Errors: a fit that fails.
Result<TimeCostProblem> MakeExponentialProblem(const CostedPipeline& pipeline);

// Every option of a table on the solver's grid, by knob; those that take
// longer than `most_seconds` are left out.
std::vector<GridOption> GridOptions(const CostTable& table, std::size_t num_knobs,
                                    const Guard& guard, const frontier::Scale& scale,
                                    double slowest_cost, double most_seconds);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_SEARCH_TIME_COST_PROBLEM_H_
