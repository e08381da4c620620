// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_MEASURE_SIMULATED_SWEEP_H_
#define PERSEUS_TESTS_MEASURE_SIMULATED_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/sweep.h"
#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::measure {

// A pipeline that sweeps its clocks while it trains, on imaginary GPUs of which all is
// known: every rank has a Sweep of its own, which sees begins, ends and a
// counter that steps, and nothing else.
struct SimulatedPipeline {
  // Of clocks; times and energies are multiplied by `scale`. With sweep.default_clocks all kinds
  // need a cost at default clocks.
  Profile truth;
  double scale = 1;
  std::string schedule = "1f1b";
  int microbatches = 12;
  double blocking_watts = 85;  // At the highest clock.
  // The share of it that falls with the clock, by this power of the clock over the highest one.
  double waiting_share = 0;
  double waiting_power = 2;

  double time_noise = 0.02;   // Relative standard deviation of each computation's time,
  double power_noise = 0.03;  // and of its power, independent.
  // Noise that is not kind. Heavy tails: Student's t with 3 degrees of freedom instead of a normal
  // distribution, and one computation in 300 takes three times as long. Drift: all times, and all
  // powers, of a card wander by this much (relative standard deviation), and forget in so long.
  bool heavy_tails = false;
  double time_drift = 0;
  double power_drift = 0;
  double drift_seconds = 10;
  // Heat: all times, and all powers, of a card rise by this share in the end, and with this time
  // constant.
  double heat = 0;
  double heat_seconds = 120;
  // Set to a clock above this one, the card runs at this one, and raises no flag; 0: never.
  int throttles_above_mhz = 0;
  double counter_seconds = 0.02;
  // The counter shows late what it stood at, and measures power only in the last share of each of
  // its periods, for the whole of it.
  double counter_lag_seconds = 0;
  double counter_duty = 1;
  double read_seconds = 0.002;   // Between two reads of the counter.
  double change_seconds = 0.02;  // From an iteration's begin until its new clock is in effect.
  double rest_seconds = 0.03;    // After the last computation of all: the optimizer,
  double rest_watts = 250;       // on every rank.
  std::uint64_t seed = 1;
  SweepSettings sweep;
  // Work of a computation, and what its time and energy are multiplied by; empty: 0 and 1.
  std::function<double(int microbatch, std::int64_t iteration)> work;
  std::function<double(double work)> cost_of_work;
  int most_iterations = 5000;
};

struct SimulatedRank {
  std::vector<Estimate> rows;
  std::optional<BlockingPower> blocking;
  std::vector<WaitingRow> waiting;
  SweepCost cost;
  std::optional<double> counter_period_seconds;
  std::vector<std::string> notes;
};

struct SimulatedResult {
  std::vector<SimulatedRank> ranks;
  std::int64_t iterations = 0;  // Until the last rank's sweep was done.
  double seconds = 0;
};

// Errors: what the schedule or the profile has wrong.
Result<SimulatedResult> SimulateSweep(const SimulatedPipeline& pipeline);

// What an iteration of it runs.
Result<PipelineDag> DagOf(const SimulatedPipeline& pipeline);

// The truth of one row, scaled; nullptr where the profile has no such row.
std::optional<Option> TruthOf(const SimulatedPipeline& pipeline, const Estimate& row);

// What a rank that waits draws at a clock, in truth.
double WaitingWatts(const SimulatedPipeline& pipeline, double mhz);

}  // namespace perseus::measure

#endif  // PERSEUS_TESTS_MEASURE_SIMULATED_SWEEP_H_
