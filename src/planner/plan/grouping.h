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

namespace perseus::plan {

// The next coarser granularity: each of its groups holds whole groups of the
// finer one. Of the coarsest, itself.
Granularity Coarser(Granularity granularity);

// The computations that have to share one knob: every
// computation in exactly one group, members ascending, groups in order of their
// first member.
std::vector<std::vector<int>> GroupComputations(const CostedPipeline& pipeline,
                                                Granularity granularity);

// The knobs that every member has, the baseline's first, then fastest first.
// For a group of one the Pareto-optimal ones in guarded time, fastest first.
// Errors: members without a knob in common.
Result<std::vector<int>> CommonKnobs(const CostedPipeline& pipeline, const Guard& guard,
                                     const std::vector<int>& members);

// Whether choices of knobs keep the constraints of a plan, however they were found.
class KeptConstraints {
 public:
  // The pipeline must outlive it.
  KeptConstraints(const CostedPipeline& pipeline, const PlanConstraints& constraints);

  // All but the time margin. `knobs`: [computation].
  bool Keep(std::span<const int> knobs) const;

  // Iteration time without conditions if slowed computations last longer by the margin.
  double GuardedSeconds(const std::vector<CostOption>& options) const;

  // The pipeline with that margin in its options' times.
  CostedPipeline Guarded() const;

  // Computations that share a knob, by granularity. Empty where every computation has its own.
  const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  const CostedPipeline& pipeline_;
  Guard guard_;
  std::vector<std::vector<int>> groups_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPING_H_
