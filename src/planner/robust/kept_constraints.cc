// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/kept_constraints.h"

#include <algorithm>
#include <cstddef>

#include "plan/grouping.h"

namespace perseus::robust {

KeptConstraints::KeptConstraints(const CostedPipeline& pipeline, const PlanConstraints& constraints)
    : pipeline_(pipeline),
      constraints_(constraints),
      guard_{constraints.time_margin_sigmas, constraints.time_margin_fraction} {
  if (constraints.granularity != Granularity::kComputation) {
    groups_ = plan::GroupComputations(pipeline, constraints);
  }
  for (const CostTable& table : pipeline.tables) {
    fastest_seconds_.push_back(table.options.front().time_seconds);
  }
}

// As docs/explanation/planning.md has it: computations at one knob last so long together, even with
// everything at its fastest; or the whole rank keeps one.
bool KeptConstraints::KeepsDwell(std::span<const int> knobs, const std::vector<int>& order) const {
  // A plan that was made to just last so long does, whatever order its parts were added in.
  constexpr double kRounding = 1e-12;
  const double least_seconds = constraints_.min_dwell_seconds * (1 - kRounding);
  double seconds = 0;
  bool changed = false;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && knobs[order[k]] != knobs[order[k - 1]]) {
      if (seconds < least_seconds) return false;
      seconds = 0;
      changed = true;
    }
    seconds += fastest_seconds_[pipeline_.table_of[order[k]]];
  }
  return !changed || seconds >= least_seconds;
}

bool KeptConstraints::Keep(std::span<const int> knobs) const {
  for (const std::vector<int>& group : groups_) {
    for (const int i : group) {
      if (knobs[i] != knobs[group.front()]) return false;
    }
  }
  if (constraints_.min_dwell_seconds > 0) {
    for (const std::vector<int>& order : pipeline_.dag.rank_order) {
      if (!KeepsDwell(knobs, order)) return false;
    }
  }
  if (constraints_.max_knobs) {
    std::vector<bool> used(pipeline_.knobs.size(), false);
    for (const int knob : knobs) used[knob] = true;
    if (std::count(used.begin(), used.end(), true) > *constraints_.max_knobs) return false;
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
    table.options = plan::ParetoOptions(table, {});
  }
  return guarded;
}

}  // namespace perseus::robust
