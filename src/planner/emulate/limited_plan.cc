// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/limited_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "model/iteration_energy.h"

namespace perseus::emulate {

OptionsByKnob::OptionsByKnob(const CostedPipeline& pipeline, const model::FixedNoise& noise)
    : knobs_(pipeline.knobs.size()), table_of_(pipeline.table_of) {
  for (const CostTable& table : pipeline.tables) {
    const int first = static_cast<int>(options_.size());
    const double factor = noise.stage[table.stage];
    stage_noise_.push_back(factor);
    for (const CostOption& option : table.all_options) {
      options_.push_back({.time_seconds = option.time_seconds * factor,
                          .energy_joules = option.energy_joules * factor,
                          .watts = option.energy_joules / option.time_seconds});
    }
    for (const CostOption* nearest : model::NearestOptions(pipeline, table)) {
      const auto place = nearest == nullptr ? -1 - first : nearest - table.all_options.data();
      index_.push_back(first + static_cast<int>(place));
    }
  }
}

TimedOption OptionsByKnob::WithStageNoise(int i, const CostOption& option) const {
  const double factor = stage_noise_[table_of_[i]];
  return {.time_seconds = option.time_seconds * factor,
          .energy_joules = option.energy_joules * factor,
          .watts = option.energy_joules / option.time_seconds};
}

CostOption LimitedOption(const CostedPipeline& pipeline, const CostTable& table,
                         const CostOption& planned, const RankLimits& limits) {
  CostOption option = planned;
  const auto mhz = [&](const CostOption& o) { return pipeline.knobs[o.knob].number; };
  if (std::isfinite(limits.most_mhz) && mhz(option) > limits.most_mhz) {
    const auto allowed =
        std::find_if(table.all_options.begin(), table.all_options.end(),
                     [&](const CostOption& o) { return mhz(o) <= limits.most_mhz; });
    option = allowed == table.all_options.end() ? table.all_options.back() : *allowed;
  }
  const auto watts = [&](const CostOption& o) {
    return o.energy_joules / o.time_seconds / pipeline.tensor_parallel;
  };
  if (watts(option) <= limits.most_watts) return option;
  // Fastest first; where none is allowed, of least power first.
  const auto rank = [&](const CostOption& o) {
    const bool allowed = watts(o) <= limits.most_watts;
    return std::tuple(!allowed, allowed ? 0 : watts(o), o.time_seconds, o.energy_joules);
  };
  const CostOption before = option;
  for (const CostOption& other : table.all_options) {
    const bool above = pipeline.knobs_are_numbers && mhz(other) > mhz(before);
    if (!above && rank(other) < rank(option)) option = other;
  }
  return option;
}

const LimitedPlan& LimitedPlans::Get(int plan_index, const Plan& plan,
                                     const std::vector<RankLimits>& limits) {
  std::unique_ptr<LimitedPlan>& limited = plans_[{plan_index, limits}];
  if (!limited) limited = Make(plan, limits);
  return *limited;
}

std::unique_ptr<LimitedPlan> LimitedPlans::Make(const Plan& plan,
                                                const std::vector<RankLimits>& limits) {
  const PipelineDag& dag = pipeline_.dag;
  auto limited = std::make_unique<LimitedPlan>();
  limited->serial = next_serial_++;
  limited->straggles = !limits.empty();
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    limited->slow.push_back(limits.empty() ? 1 : limits[rank].slow);
    limited->stall_seconds.push_back(limits.empty() ? 0 : limits[rank].stall_seconds);
  }
  std::vector<double> durations(dag.size());
  std::vector<double> busy_seconds(dag.num_ranks, 0);
  for (int i = 0; i < dag.size(); ++i) {
    const int rank = dag.computations[i].rank;
    const CostOption option = limits.empty() ? plan.options[i]
                                             : LimitedOption(pipeline_, pipeline_.TableOf(i),
                                                             plan.options[i], limits[rank]);
    durations[i] = option.time_seconds;
    busy_seconds[rank] += option.time_seconds;
    limited->computing_joules += option.energy_joules;
    limited->computations.push_back(
        {.option = options_.WithStageNoise(i, option), .knob = option.knob, .rank = rank});
  }
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    limited->busy_joules += pipeline_.rank_blocking_power_watts[rank] * busy_seconds[rank];
  }
  std::vector<int> knobs;
  for (const LimitedComputation& computation : limited->computations) {
    knobs.push_back(computation.knob);
  }
  switching::PlannedRows rows = switching::MakeRows(dag, knobs, durations);
  rows.waiting_knobs = switching::WaitingKnobsOf(pipeline_, plan.waiting, rules_);
  limited->waiting = rows.waiting_knobs.empty() ? Waiting::kSetClock : Waiting::kCheapest;
  limited->rows = std::make_shared<const switching::PlannedRows>(std::move(rows));
  limited->time_seconds = Replay(dag, durations).iteration_time_seconds;
  Timing timing;
  const auto run = [&](int i, double ready, double* start, double* end) {
    const Computation& computation = dag.computations[i];
    *start = computation.position == 0 ? std::max(ready, limited->stall_seconds[computation.rank])
                                       : ready;
    *end = *start + durations[i] * limited->slow[computation.rank];
  };
  ReplayBy(dag, run, &timing);
  limited->nominal_seconds = timing.iteration_time_seconds;
  return limited;
}

}  // namespace perseus::emulate
