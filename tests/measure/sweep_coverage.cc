// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/sweep_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/saving_interval.h"
#include "perseus/planner.h"
#include "profile/rows.h"

namespace perseus::measure {
namespace {

constexpr double kSigmas = 1.96;

Result<Planner> PlannerOf(const Profile& profile, const SimulatedPipeline& pipeline,
                          const std::vector<double>& blocking) {
  CostSpec costs;
  costs.blocking_power_watts = blocking;
  return Planner::Create(CostPipeline(profile, DagOf(pipeline).value(), costs).value(), {});
}

// Times of the card at the end of a sweep over those of the cold one; powers are higher by as much.
double WarmthOf(const SimulatedPipeline& pipeline, const SimulatedResult& result) {
  return 1 + pipeline.heat * (1 - std::exp(-result.seconds / pipeline.heat_seconds));
}

// The plan of the recovered profile, its interval, and what it saves in truth.
void JudgeSaving(const SimulatedPipeline& pipeline, const SimulatedResult& result,
                 Coverage* coverage) {
  Profile truth = pipeline.truth;
  for (OptionTable& table : truth.tables) {
    for (Option& option : table.options) {
      option.time_seconds *= pipeline.scale;
      option.energy_joules *= pipeline.scale;
    }
  }
  std::vector<double> blocking;
  std::string csv = "stage,instruction,frequency,time,energy,error_sources\n";
  for (const SimulatedRank& rank : result.ranks) {
    const BlockingPower power = rank.blocking.value_or(BlockingPower{pipeline.blocking_watts, 0});
    blocking.push_back(power.watts);
    for (const Estimate& row : rank.rows) {
      const double time = row.seconds_std / row.seconds;
      const double energy = row.joules_std / row.joules;
      csv += fmt::format("{},{},{},{},{},{}\n", row.kind.stage, ComputationTypeName(row.kind.type),
                         row.mhz, row.seconds, row.joules,
                         profile::FormatErrorSources(
                             {.time_std = time,
                              .power_std = std::sqrt(std::max(0.0, energy * energy - time * time)),
                              .blocking_std = power.watts_std / power.watts,
                              .time_sources = row.time_errors,
                              .power_sources = row.power_errors}));
    }
  }
  const Profile recovered = ParseProfile(csv, "recovered").value();
  const auto planner = PlannerOf(recovered, pipeline, blocking);
  const auto truth_planner = PlannerOf(truth, pipeline, {pipeline.blocking_watts});
  const auto plan = planner->PlanFor(planner->baseline().iteration_time_seconds,
                                     {.constraints = {}, .effort = 0.001});
  const auto interval = model::IntervalOfSaving(planner->pipeline(), plan->options, plan->waiting);
  std::vector<CostOption> options;
  for (int i = 0; i < planner->pipeline().dag.size(); ++i) {
    const auto knob = static_cast<std::size_t>(plan->options[static_cast<std::size_t>(i)].knob);
    const double mhz = planner->pipeline().knobs[knob].number;
    for (const CostOption& option : truth_planner->pipeline().TableOf(i).all_options) {
      const auto other = static_cast<std::size_t>(option.knob);
      if (truth_planner->pipeline().knobs[other].number == mhz) options.push_back(option);
    }
  }
  const double saving = truth_planner->Evaluate(std::move(options))->saving_percent;
  coverage->savings.Count(interval && interval->least_percent <= saving &&
                          saving <= interval->most_percent);
  if (interval) coverage->widths += interval->most_percent - interval->least_percent;
  coverage->errors += plan->saving_percent - saving;
}

}  // namespace

std::vector<Noise> Noises() {
  return {{.name = "normal, no drift"},
          {.name = "heavy tails, no drift", .heavy_tails = true},
          {.name = "heavy tails, 0.3 % drift over 2 s",
           .heavy_tails = true,
           .drift = 0.003,
           .drift_seconds = 2},
          {.name = "heavy tails, 0.3 % drift over 10 s",
           .heavy_tails = true,
           .drift = 0.003,
           .drift_seconds = 10},
          {.name = "heavy tails, 0.6 % drift over 30 s",
           .heavy_tails = true,
           .drift = 0.006,
           .drift_seconds = 30}};
}

std::vector<Noise> Disturbances() {
  return {{.name = "none"},
          {.name = "heat 1 % in 2 min", .heat = 0.01, .heat_seconds = 120},
          {.name = "heat 1 % in 10 min", .heat = 0.01, .heat_seconds = 600},
          {.name = "counter 0.1 s late", .counter_lag_seconds = 0.1},
          {.name = "counter 0.5 s late", .counter_lag_seconds = 0.5},
          {.name = "counter looks 1/4 of the time", .counter_duty = 0.25},
          {.name = "throttled above 95 %", .throttles_above = 0.95}};
}

void Disturb(const Noise& noise, SimulatedPipeline* pipeline) {
  pipeline->heavy_tails = noise.heavy_tails;
  pipeline->time_drift = noise.drift;
  pipeline->power_drift = 2 * noise.drift;
  pipeline->drift_seconds = noise.drift_seconds;
  pipeline->heat = noise.heat;
  pipeline->heat_seconds = noise.heat_seconds;
  pipeline->counter_lag_seconds = noise.counter_lag_seconds;
  pipeline->counter_duty = noise.counter_duty;
  if (noise.throttles_above == 0) return;
  double highest = 0;
  for (const Knob& knob : pipeline->truth.knobs) highest = std::max(highest, knob.number);
  double most = 0;
  for (const Knob& knob : pipeline->truth.knobs) {
    if (knob.number <= noise.throttles_above * highest) most = std::max(most, knob.number);
  }
  pipeline->throttles_above_mhz = static_cast<int>(std::lround(most));
}

void CountRows(const SimulatedPipeline& pipeline, const SimulatedResult& result,
               Coverage* coverage) {
  const double warm = WarmthOf(pipeline, result);
  for (const SimulatedRank& rank : result.ranks) {
    for (const Estimate& row : rank.rows) {
      if (IsDoubtful(row)) {
        ++coverage->doubtful;
        continue;
      }
      const Option truth = TruthOf(pipeline, row).value();
      coverage->times.Count(std::abs(row.seconds - warm * truth.time_seconds) <=
                            kSigmas * row.seconds_std);
      coverage->energies.Count(std::abs(row.joules - warm * warm * truth.energy_joules) <=
                               kSigmas * row.joules_std);
    }
    for (const WaitingRow& row : rank.waiting) {
      if (IsDoubtful(row)) {
        ++coverage->doubtful_waiting;
        continue;
      }
      coverage->waiting.Count(std::abs(row.power.watts - WaitingWatts(pipeline, row.mhz)) <=
                              kSigmas * row.power.watts_std);
    }
    if (!rank.blocking) continue;
    coverage->blocking.Count(std::abs(rank.blocking->watts - pipeline.blocking_watts) <=
                             kSigmas * rank.blocking->watts_std);
  }
}

Bias BiasOf(const SimulatedPipeline& pipeline, const SimulatedResult& result) {
  struct Error {
    double time = 0;
    double energy = 0;
  };
  const double warm = WarmthOf(pipeline, result);
  Bias bias;
  double rows = 0;
  double lowered = 0;
  for (const SimulatedRank& rank : result.ranks) {
    std::map<Kind, std::map<int, Error>> errors;  // By clock.
    for (const Estimate& row : rank.rows) {
      if (IsDoubtful(row)) continue;
      const Option truth = TruthOf(pipeline, row).value();
      const Error error = {row.seconds / (warm * truth.time_seconds) - 1,
                           row.joules / (warm * warm * truth.energy_joules) - 1};
      bias.times += error.time;
      bias.energies += error.energy;
      ++rows;
      errors[row.kind][row.mhz] = error;
    }
    for (const auto& [kind, by_clock] : errors) {
      const auto& [highest_mhz, highest] = *by_clock.rbegin();
      for (const auto& [mhz, error] : by_clock) {
        if (mhz == highest_mhz || mhz == kDefaultClockMhz) continue;
        bias.lowered_times += error.time - highest.time;
        bias.lowered_energies += error.energy - highest.energy;
        ++lowered;
      }
    }
  }
  bias.times /= std::max(1.0, rows);
  bias.energies /= std::max(1.0, rows);
  bias.lowered_times /= std::max(1.0, lowered);
  bias.lowered_energies /= std::max(1.0, lowered);
  return bias;
}

void Coverage::Add(const Coverage& other) {
  const auto add = [](const Share& from, Share* to) {
    to->within += from.within;
    to->all += from.all;
  };
  sweeps += other.sweeps;
  add(other.times, &times);
  add(other.energies, &energies);
  add(other.blocking, &blocking);
  add(other.waiting, &waiting);
  add(other.savings, &savings);
  doubtful += other.doubtful;
  doubtful_waiting += other.doubtful_waiting;
  widths += other.widths;
  errors += other.errors;
}

SimulatedPipeline Modelled(double seconds, int clocks) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 3; ++stage) {
    for (int i = 0; i < clocks; ++i) {
      const double mhz = 1410 - 30 * i;
      const double x = mhz / 1410;
      const double time = seconds * (1 + 0.05 * stage) * (0.2 + 0.8 / x);
      csv += fmt::format("{},forward,{},{},{}\n", stage, mhz, time, time * (90 + 330 * x * x * x));
      csv += fmt::format("{},backward,{},{},{}\n", stage, mhz, 1.9 * time,
                         1.9 * time * (90 + 380 * x * x * x));
    }
  }
  SimulatedPipeline pipeline;
  pipeline.truth = ParseProfile(csv, "modelled").value();
  pipeline.microbatches = 8;
  pipeline.sweep.order.least_mhz = 1410 - 30 * (clocks - 1);
  return pipeline;
}

void AddSweep(const Noise& noise, std::uint64_t seed, Coverage* coverage) {
  SimulatedPipeline pipeline = Modelled(seed % 2 == 0 ? 0.05 : 0.02, 16);
  pipeline.counter_seconds = 0.02 + 0.02 * static_cast<double>(seed % 4);
  Disturb(noise, &pipeline);
  pipeline.seed = seed;
  const auto result = SimulateSweep(pipeline);
  if (!result) return;
  ++coverage->sweeps;
  CountRows(pipeline, *result, coverage);
  JudgeSaving(pipeline, *result, coverage);
}

std::string Row(const std::string& name, const Coverage& coverage) {
  return fmt::format("{:<44} {:>6} {:>7.1f} {:>10.1f} {:>9.1f} {:>8.1f} {:>7.2f} {:>7.3f}", name,
                     coverage.sweeps, coverage.times.percent(), coverage.energies.percent(),
                     coverage.blocking.percent(), coverage.savings.percent(),
                     coverage.sweeps == 0 ? 0 : coverage.widths / coverage.sweeps,
                     coverage.sweeps == 0 ? 0 : coverage.errors / coverage.sweeps);
}

}  // namespace perseus::measure
