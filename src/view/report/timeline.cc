// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace perseus::report {
namespace {

std::int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Follows the tightest predecessor from the computation that ends last. Of
// equals, the one on the same rank, then the first: fewest jumps to draw.
std::vector<int> TraceCriticalPath(const PipelineDag& dag, const Timing& timing) {
  std::vector<int> path;
  if (dag.size() == 0) return path;
  const auto last = std::max_element(timing.end_seconds.begin(), timing.end_seconds.end());
  int current = static_cast<int>(last - timing.end_seconds.begin());
  const double tolerance = 1e-9 * timing.iteration_time_seconds;
  for (;;) {
    path.push_back(current);
    int next = -1;
    for (int e = dag.first_precedence[current]; e < dag.first_precedence[current + 1]; ++e) {
      const Precedence& edge = dag.precedences[e];
      const double ready = timing.end_seconds[edge.from] + edge.delay_seconds;
      if (ready < timing.start_seconds[current] - tolerance) continue;
      const bool same_rank = dag.computations[edge.from].rank == dag.computations[current].rank;
      if (next < 0 || same_rank) next = edge.from;
    }
    if (next < 0) break;
    current = next;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

Timeline LayOut(const CostedPipeline& pipeline, const Plan& plan) {
  std::vector<double> durations;
  durations.reserve(plan.options.size());
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);

  Timeline timeline;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    timeline.start_ns.push_back(Nanoseconds(timing.start_seconds[i]));
    timeline.end_ns.push_back(Nanoseconds(timing.end_seconds[i]));
  }
  timeline.iteration_ns = Nanoseconds(timing.iteration_time_seconds);
  timeline.critical = CriticalComputations(pipeline.dag, timing);
  timeline.critical_path = TraceCriticalPath(pipeline.dag, timing);
  return timeline;
}

std::string ComputationLabel(const Computation& computation) {
  const ComputationId& id = computation.id;
  std::string label = fmt::format("{}{}", ComputationTypeLetter(id.type), id.microbatch);
  if (computation.fused) {
    label += fmt::format("+{}{}", ComputationTypeLetter(computation.fused->type),
                         computation.fused->microbatch);
  }
  return label;
}

std::vector<std::vector<int>> StagesOfRanks(const PipelineDag& dag) {
  std::vector<std::set<int>> stages(dag.num_ranks);
  for (const Computation& computation : dag.computations) {
    stages[computation.rank].insert(computation.id.stage);
    if (computation.fused) stages[computation.rank].insert(computation.fused->stage);
  }
  std::vector<std::vector<int>> result;
  result.reserve(stages.size());
  for (const std::set<int>& of_rank : stages) result.emplace_back(of_rank.begin(), of_rank.end());
  return result;
}

}  // namespace perseus::report
