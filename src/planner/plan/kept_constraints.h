// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_KEPT_CONSTRAINTS_H_
#define PERSEUS_PLAN_KEPT_CONSTRAINTS_H_

#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// Whether choices of knobs keep the constraints of a plan, however they were found.
class KeptConstraints {
 public:
  // The pipeline must outlive it.
  KeptConstraints(const CostedPipeline& pipeline, const PlanConstraints& constraints);

  // All but the time margin. `knobs`: [computation].
  bool Keep(std::span<const int> knobs) const;

  // What the pipeline takes on paper if slowed computations last longer by the margin.
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

#endif  // PERSEUS_PLAN_KEPT_CONSTRAINTS_H_
