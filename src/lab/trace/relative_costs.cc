// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/relative_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/cost_options.h"

namespace perseus::trace {
namespace {

// A computation that took no measurable time has clocks, too.
constexpr double kShortestSeconds = 1e-6;

CostTable ScaledTable(const OptionTable& from, double seconds, double gpus,
                      double blocking_power_watts) {
  CostTable table;
  table.blocking_power_watts = blocking_power_watts;
  const double factor =
      std::max(seconds, kShortestSeconds) / from.options[from.baseline].time_seconds;
  for (const Option& option : from.options) {
    table.all_options.push_back({.knob = option.knob,
                                 .time_seconds = option.time_seconds * factor,
                                 .energy_joules = option.energy_joules * factor * gpus,
                                 .time_std_seconds = option.time_std_seconds * factor});
  }
  table.baseline = table.all_options[from.baseline];
  std::stable_sort(table.all_options.begin(), table.all_options.end(),
                   [](const CostOption& a, const CostOption& b) { return a.knob < b.knob; });
  table.options = plan::ParetoOptions(table, plan::Guard{});
  table.dominated = static_cast<int>(table.all_options.size() - table.options.size());
  return table;
}

}  // namespace

int ProfileStage(int block, int blocks, int profile_stages) {
  if (blocks <= 1) return 0;
  return (block * (profile_stages - 1) * 2 + (blocks - 1)) / (2 * (blocks - 1));
}

Result<CostedPipeline> CostRecorded(const RecordedPipeline& pipeline,
                                    std::span<const double> seconds, const RelativeCostSpec& spec) {
  const Profile& profile = *spec.profile;
  const double gpus = spec.gpus_per_rank;
  const double summed = profile.tensor_parallel_ranks;  // GPUs in each energy.
  CostedPipeline costed;
  costed.dag = pipeline.dag;
  costed.knobs = profile.knobs;
  costed.knobs_are_numbers = profile.knobs_are_numbers;
  costed.modelled = profile.modelled;
  costed.tensor_parallel = spec.gpus_per_rank;
  const double rank_watts = spec.blocking_power_watts * gpus;
  costed.rank_blocking_power_watts.assign(costed.dag.num_ranks, rank_watts);
  costed.total_blocking_power_watts = rank_watts * costed.dag.num_ranks;
  for (int i = 0; i < costed.dag.size(); ++i) {
    const ComputationId& id = costed.dag.computations[i].id;
    const int stage = ProfileStage(id.stage, costed.dag.num_stages, profile.num_stages);
    const OptionTable* from = profile.Find(stage, id.type);
    if (from == nullptr) {
      return InvalidInput(
          fmt::format("{}: the trace runs {}, and the profile has no such rows of stage {}; give a "
                      "profile with "
                      "forward and backward",
                      profile.source, ComputationTypeName(id.type), stage));
    }
    CostTable table = ScaledTable(*from, seconds[i], summed > 0 ? gpus / summed : gpus, rank_watts);
    table.stage = id.stage;
    table.type = id.type;
    costed.table_of.push_back(static_cast<int>(costed.tables.size()));
    costed.tables.push_back(std::move(table));
  }
  return costed;
}

}  // namespace perseus::trace
