// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_KNOB_SUBSET_H_
#define PERSEUS_PLAN_GROUPED_KNOB_SUBSET_H_

#include <functional>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/result.h"
#include "plan/search/time_cost_problem.h"

namespace perseus::plan {

// The cheapest plan within the deadline that has one knob for all; empty where
// there is none.
std::vector<CostOption> OneKnobForAll(const CostedPipeline& pipeline, const Guard& guard,
                                      double seconds);

// The pipeline without the options at other knobs.
CostedPipeline WithKnobsOnly(const CostedPipeline& pipeline, const std::vector<bool>& kept);

// The optimum of the relaxation for this deadline; its cost is off by at most
// `error`, unless that is nullptr.
Result<TimeCostSchedule> OptimumAt(const CostedPipeline& pipeline, const Guard& guard,
                                   double seconds, double slope_quantum, double* error);

// A plan with at most `max_knobs` distinct knobs. What `search` finds without
// the limit, where that keeps it and there is no dwell. Else the best of one knob for all, of the
// plan at the next coarser granularity, and of what `search` finds with few knobs left: those of
// the plan without the limit, and all, from which one after the other is dropped, down to one: the
// knob that is missed least at the optimal prices of time, and without which the deadline can still
// be met. The prices are those of slopes rounded to multiples of `slope_quantum` (0: exact). So
// fewer knobs are never better (unless than a plan without the limit that `search` left poor), nor
// is a coarser granularity, and none is worse than policy zeus-global. Errors: kInfeasible, and
// those of `search`. False of `goes_on` ends it with the best so far, once there is one.
using OptionSearch =
    std::function<Result<std::vector<CostOption>>(const CostedPipeline&, const PlanConstraints&)>;
Result<std::vector<CostOption>> SearchFewKnobs(const CostedPipeline& pipeline, double seconds,
                                               const PlanConstraints& constraints,
                                               double slope_quantum, const OptionSearch& search,
                                               const std::function<bool()>& goes_on);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_KNOB_SUBSET_H_
