// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/kept_constraints.h"

#include <cstddef>

#include "plan/grouping.h"

namespace perseus::plan {

KeptConstraints::KeptConstraints(const CostedPipeline& pipeline, const PlanConstraints& constraints)
    : pipeline_(pipeline), guard_(GuardOf(constraints)) {
  if (constraints.granularity != Granularity::kComputation) {
    groups_ = GroupComputations(pipeline, constraints.granularity);
  }
}

bool KeptConstraints::Keep(std::span<const int> knobs) const {
  for (const std::vector<int>& group : groups_) {
    for (const int i : group) {
      if (knobs[i] != knobs[group.front()]) return false;
    }
  }
  return true;
}

double KeptConstraints::GuardedSeconds(const std::vector<CostOption>& options) const {
  std::vector<double> seconds;
  seconds.reserve(options.size());
  for (std::size_t i = 0; i < options.size(); ++i) {
    seconds.push_back(guard_.Seconds(pipeline_.TableOf(static_cast<int>(i)), options[i]));
  }
  return Replay(pipeline_.dag, seconds).iteration_time_seconds;
}

CostedPipeline KeptConstraints::Guarded() const {
  CostedPipeline guarded = pipeline_;
  for (CostTable& table : guarded.tables) {
    for (CostOption& option : table.all_options)
      option.time_seconds = guard_.Seconds(table, option);
    table.options = ParetoOptions(table, {});
  }
  return guarded;
}

}  // namespace perseus::plan
