// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <limits>

#include "perseus/pipeline.h"

namespace perseus {
inline namespace v0 {

Timing Replay(const PipelineDag& dag, std::span<const double> durations_seconds) {
  Timing timing;
  if (durations_seconds.size() != dag.computations.size()) {
    timing.iteration_time_seconds = std::numeric_limits<double>::quiet_NaN();
    return timing;
  }
  const auto run = [&](int i, double ready, double* start, double* end) {
    *start = ready;
    *end = ready + durations_seconds[i];
  };
  ReplayBy(dag, run, &timing);
  return timing;
}

std::vector<bool> CriticalComputations(const PipelineDag& dag, const Timing& timing) {
  if (timing.start_seconds.size() != dag.computations.size() ||
      timing.end_seconds.size() != dag.computations.size()) {
    return std::vector<bool>(dag.computations.size());
  }
  const double tolerance_seconds = 1e-9 * timing.iteration_time_seconds;
  double last_end = 0;
  for (const double end : timing.end_seconds) last_end = std::max(last_end, end);
  // How much later each may end without delaying the last one.
  std::vector<double> slack_seconds(dag.size());
  for (int i = 0; i < dag.size(); ++i) slack_seconds[i] = last_end - timing.end_seconds[i];
  for (int to = dag.size() - 1; to >= 0; --to) {
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double gap = timing.start_seconds[to] -
                         (timing.end_seconds[precedence.from] + precedence.delay_seconds);
      double& slack = slack_seconds[precedence.from];
      slack = std::min(slack, gap + slack_seconds[to]);
    }
  }
  std::vector<bool> critical(dag.size());
  for (int i = 0; i < dag.size(); ++i) critical[i] = slack_seconds[i] <= tolerance_seconds;
  return critical;
}

std::vector<Phase> ComputationPhases(const PipelineDag& dag) {
  std::vector<Phase> phases(dag.size(), Phase::kSteady);
  const auto is_forward = [&](int i) {
    return dag.computations[i].id.type == ComputationType::kForward;
  };
  const auto is_backward = [&](int i) {
    return !is_forward(i) || dag.computations[i].fused.has_value();
  };
  for (const std::vector<int>& order : dag.rank_order) {
    const auto first_backward = std::find_if(order.begin(), order.end(), is_backward);
    const auto last_forward = std::find_if(order.rbegin(), order.rend(), is_forward);
    for (auto it = order.begin(); it != first_backward; ++it) phases[*it] = Phase::kWarmUp;
    for (auto it = last_forward.base(); it != order.end(); ++it) phases[*it] = Phase::kCoolDown;
  }
  return phases;
}

}  // namespace v0
}  // namespace perseus
