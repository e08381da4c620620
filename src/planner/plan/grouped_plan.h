// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_PLAN_H_
#define PERSEUS_PLAN_GROUPED_PLAN_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/result.h"

namespace perseus::plan {

// A plan in which computations share knobs.
struct GroupedPlan {
  std::vector<CostOption> options;  // [computation]
  // No plan within the constraints that ends by the deadline has less effective
  // energy (sum of energy - blocking power x time), so none that ends at T uses
  // less than this + T x total blocking power. -infinity: nothing is known.
  double lower_bound_effective_joules = 0;
  // The bound is met, but for 1e-10 of the energies: no such plan is better.
  bool proven = false;
};

// Whether that granularity makes computations share knobs in this pipeline.
bool SharesKnobs(const CostedPipeline& pipeline, Granularity granularity);

// A plan that ends by `seconds` where SharesKnobs(). Does `effort` times the
// usual work. See grouped_plan.cc for what is predicted. Errors: kInfeasible
// where nothing was found.
Result<GroupedPlan> SearchGroups(const CostedPipeline& pipeline, double seconds,
                                 const PlanConstraints& constraints, double effort);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_PLAN_H_
