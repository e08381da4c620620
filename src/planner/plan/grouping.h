// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPING_H_
#define PERSEUS_PLAN_GROUPING_H_

#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/result.h"
#include "plan/cost_options.h"
#include "plan/grouped/dwell_segments.h"

namespace perseus::plan {

// The next coarser granularity: each of its groups holds whole groups of the
// finer one. Of the coarsest, itself.
Granularity Coarser(Granularity granularity);

// The computations that have to share one knob under the constraints: every
// computation in exactly one group, members ascending, groups in order of their
// first member. Groups by granularity, then merges groups until every rank keeps
// the dwell even if everything runs at its fastest.
std::vector<std::vector<int>> GroupComputations(const CostedPipeline& pipeline,
                                                const PlanConstraints& constraints);

// Whether they may make computations share knobs.
bool MayShareKnobs(const PlanConstraints& constraints);
// Whether they have a dwell.
bool HasDwell(const PlanConstraints& constraints);
// The dwell, less what the order in which times are added up may hide.
double LeastDwellSeconds(const PlanConstraints& constraints);
// Whether knobs [computation] keep the dwell (docs/explanation/planning.md): computations at one
// knob last so long together, even with everything at its fastest; or the whole rank keeps one.
bool KeepsDwell(const CostedPipeline& pipeline, const PlanConstraints& constraints,
                std::span<const int> knobs);
// DwellLevels() of the dwell; and of the least whole cycles that last so long, where these differ.
std::vector<DwellLevelList> LevelsOfDwell(const CostedPipeline& pipeline,
                                          const PlanConstraints& constraints);

// The knobs that every member has, the baseline's first, then fastest first.
// For a group of one the Pareto-optimal ones in guarded time, fastest first.
// Errors: members without a knob in common.
Result<std::vector<int>> CommonKnobs(const CostedPipeline& pipeline, const Guard& guard,
                                     const std::vector<int>& members);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPING_H_
