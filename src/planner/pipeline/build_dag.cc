// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "perseus/pipeline.h"
#include "pipeline/step_graph.h"

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::StepDependency;
using pipeline::StepGraph;

Result<void> CheckSeconds(std::string_view what, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return {};
  return InvalidInput(
      fmt::format("the {} is {} seconds: it must be a finite number of at least 0", what, seconds));
}

Result<void> CheckFixedTimes(const FixedTimes& fixed, int num_stages) {
  const auto given = static_cast<int>(fixed.comm_delay_seconds.size());
  if (given > 1 && given != num_stages - 1) {
    return InvalidInput(fmt::format(
        "{} communication delays are given for {} stages: give one for all, or {}, one for each "
        "boundary between stages",
        given, num_stages, num_stages - 1));
  }
  for (const double delay : fixed.comm_delay_seconds) {
    if (auto ok = CheckSeconds("communication delay", delay); !ok) return ok;
  }
  if (auto ok = CheckSeconds("data loading time", fixed.data_loading_seconds); !ok) return ok;
  return CheckSeconds("iteration overhead", fixed.iteration_overhead_seconds);
}

double CommDelay(const FixedTimes& fixed, int boundary) {
  const auto& delays = fixed.comm_delay_seconds;
  if (delays.empty()) return 0;
  return delays.size() == 1 ? delays[0] : delays[boundary];
}

bool LoadsData(const ScheduleStep& step) {
  return step.id.type == ComputationType::kForward && step.id.stage == 0;
}

// Steps by their start when everything takes its unit time, ranks in order: a
// topological order, for every step takes at least one unit.
std::vector<int> StepsInTopologicalOrder(const StepGraph& graph) {
  std::vector<int> steps(graph.size());
  std::iota(steps.begin(), steps.end(), 0);
  std::stable_sort(steps.begin(), steps.end(),
                   [&](int a, int b) { return graph.start_units(a) < graph.start_units(b); });
  return steps;
}

}  // namespace

Result<PipelineDag> BuildDag(const Schedule& schedule, const FixedTimes& fixed) {
  auto graph = StepGraph::Connect(schedule);
  if (!graph) return tl::unexpected(graph.error());
  if (auto ok = CheckFixedTimes(fixed, schedule.num_stages); !ok) {
    return tl::unexpected(ok.error());
  }

  PipelineDag dag;
  dag.num_ranks = schedule.num_ranks;
  dag.num_stages = schedule.num_stages;
  dag.num_microbatches = schedule.num_microbatches;
  dag.schedule_name = schedule.name;
  dag.end_delay_seconds = fixed.iteration_overhead_seconds;
  dag.fixed = fixed;

  const std::vector<int> order = StepsInTopologicalOrder(*graph);
  std::vector<int> computation_of(graph->size());
  for (int i = 0; i < graph->size(); ++i) computation_of[order[i]] = i;
  dag.computations.resize(graph->size());
  dag.rank_order.resize(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& steps = schedule.ranks[rank];
    for (int position = 0; position < static_cast<int>(steps.size()); ++position) {
      const int computation = computation_of[graph->first_step(rank) + position];
      dag.computations[computation] = {rank, position, steps[position].id, steps[position].fused};
      dag.rank_order[rank].push_back(computation);
    }
  }

  dag.start_delay_seconds.assign(graph->size(), 0.0);
  dag.first_precedence.reserve(graph->size() + 1);
  dag.first_precedence.push_back(0);
  std::vector<Precedence> incoming;
  for (int to = 0; to < graph->size(); ++to) {
    const auto& [rank, position, id, fused] = dag.computations[to];
    const ScheduleStep& step = schedule.ranks[rank][position];
    const double loading = LoadsData(step) ? fixed.data_loading_seconds : 0;
    incoming.clear();
    if (position == 0) {
      dag.start_delay_seconds[to] = loading;
    } else {
      incoming.push_back({dag.rank_order[rank][position - 1], to, loading});
    }
    for (const StepDependency& dependency : graph->DependenciesOf(step)) {
      const int from = computation_of[dependency.step];
      // Within a rank the chain of program order says it already.
      if (dag.computations[from].rank == rank) continue;
      incoming.push_back({from, to, CommDelay(fixed, dependency.boundary)});
    }
    // One arc per pair: both halves of a fused step may wait for the same one.
    std::sort(incoming.begin(), incoming.end(), [](const Precedence& a, const Precedence& b) {
      return a.from != b.from ? a.from < b.from : a.delay_seconds > b.delay_seconds;
    });
    incoming.erase(std::unique(incoming.begin(), incoming.end(),
                               [](const auto& a, const auto& b) { return a.from == b.from; }),
                   incoming.end());
    dag.precedences.insert(dag.precedences.end(), incoming.begin(), incoming.end());
    dag.first_precedence.push_back(static_cast<int>(dag.precedences.size()));
  }
  return dag;
}

}  // namespace v0
}  // namespace perseus
