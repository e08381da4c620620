// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/sweep_coverage.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus::measure {
namespace {

constexpr double kSigmas = 1.96;

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

void Coverage::Add(const Coverage& other) {
  const auto add = [](const Share& from, Share* to) {
    to->within += from.within;
    to->all += from.all;
  };
  sweeps += other.sweeps;
  add(other.times, &times);
  add(other.energies, &energies);
  add(other.blocking, &blocking);
  add(other.savings, &savings);
  widths += other.widths;
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
  pipeline.heavy_tails = noise.heavy_tails;
  pipeline.time_drift = noise.drift;
  pipeline.power_drift = 2 * noise.drift;
  pipeline.drift_seconds = noise.drift_seconds;
  pipeline.seed = seed;
  const auto result = SimulateSweep(pipeline);
  if (!result) return;
  ++coverage->sweeps;
  for (const SimulatedRank& rank : result->ranks) {
    for (const Estimate& row : rank.rows) {
      const Option truth = TruthOf(pipeline, row).value();
      coverage->times.Count(std::abs(row.seconds - truth.time_seconds) <=
                            kSigmas * row.seconds_std);
      coverage->energies.Count(std::abs(row.joules - truth.energy_joules) <=
                               kSigmas * row.joules_std);
    }
    if (!rank.blocking) continue;
    coverage->blocking.Count(std::abs(rank.blocking->watts - pipeline.blocking_watts) <=
                             kSigmas * rank.blocking->watts_std);
  }
}

std::string Row(const std::string& name, const Coverage& coverage) {
  return fmt::format("{:<44} {:>6} {:>7.1f} {:>10.1f} {:>9.1f} {:>8.1f} {:>7.2f}", name,
                     coverage.sweeps, coverage.times.percent(), coverage.energies.percent(),
                     coverage.blocking.percent(), coverage.savings.percent(),
                     coverage.sweeps == 0 ? 0 : coverage.widths / coverage.sweeps);
}

}  // namespace perseus::measure
