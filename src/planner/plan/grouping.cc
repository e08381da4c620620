// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace perseus::plan {
Granularity Coarser(Granularity granularity) {
  switch (granularity) {
    case Granularity::kComputation:
      return Granularity::kPhase;
    case Granularity::kPhase:
      return Granularity::kStageType;
    case Granularity::kStageType:
    case Granularity::kStage:
      break;
  }
  return Granularity::kStage;
}

std::vector<std::vector<int>> GroupComputations(const CostedPipeline& pipeline,
                                                Granularity granularity) {
  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  std::vector<std::vector<int>> groups;
  std::map<std::tuple<int, int, int, int>, std::size_t> group_of;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const int rank = pipeline.dag.computations[i].rank;
    // A kind is one stage and type (or fused pair of them).
    const int kind =
        granularity == Granularity::kStage ? -1 : pipeline.KindOf(pipeline.table_of[i]);
    const int phase = granularity <= Granularity::kPhase ? static_cast<int>(phases[i]) : -1;
    const int own = granularity == Granularity::kComputation ? i : -1;
    const auto [entry, added] = group_of.try_emplace({rank, kind, phase, own}, groups.size());
    if (added) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  return groups;
}

Result<std::vector<int>> CommonKnobs(const CostedPipeline& pipeline, const Guard& guard,
                                     const std::vector<int>& members) {
  std::vector<int> knobs;
  if (members.size() == 1) {
    for (const CostOption& option : ParetoOptions(pipeline.TableOf(members.front()), guard)) {
      knobs.push_back(option.knob);
    }
    return knobs;
  }
  std::map<int, int> uses;  // By table.
  for (const int i : members) ++uses[pipeline.table_of[i]];
  std::vector<double> seconds(pipeline.knobs.size(), 0);
  std::vector<int> tables_with(pipeline.knobs.size(), 0);
  const int tables = static_cast<int>(uses.size());
  for (const auto& [table, count] : uses) {
    for (const CostOption& option : pipeline.tables[table].all_options) {
      seconds[option.knob] += count * option.time_seconds;
      ++tables_with[option.knob];
    }
  }
  for (int knob = 0; knob < static_cast<int>(pipeline.knobs.size()); ++knob) {
    if (tables_with[knob] == tables) knobs.push_back(knob);
  }
  if (knobs.empty()) {
    const ComputationId& id = pipeline.dag.computations[members.front()].id;
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("the computations of stage {} that have to share a knob have none in common; "
                    "measure them at the same knobs or choose a finer granularity",
                    id.stage));
  }
  // Knobs are numbered from the highest clock (or the first row) on.
  std::stable_sort(knobs.begin() + 1, knobs.end(),
                   [&seconds](int a, int b) { return seconds[a] < seconds[b]; });
  return knobs;
}

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
