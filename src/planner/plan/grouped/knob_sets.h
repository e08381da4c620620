// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_KNOB_SETS_H_
#define PERSEUS_PLAN_GROUPED_KNOB_SETS_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/result.h"
#include "plan/grouped/grouped_plan.h"

namespace perseus::plan {

// The best plan of at most `max_knobs` distinct knobs in a small pipeline, to proof where the
// effort allows: `options`, a plan within the constraints, or a better one. Of all sets of so many
// knobs, those that the prices of time show to be too dear are left out, and the others are solved,
// the cheapest first (group_branch.h). Where there is a dwell, or the pipeline is larger, or too
// many sets are left, it returns `options` and no bound. More effort never gives a worse plan or
// bound. Errors: those of the integer arithmetic.
Result<GroupedPlan> BestOfKnobSets(const CostedPipeline& pipeline, double seconds,
                                   const PlanConstraints& constraints, double effort,
                                   std::vector<CostOption> options);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_KNOB_SETS_H_
