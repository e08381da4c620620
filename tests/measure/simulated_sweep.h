// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_SIMULATED_SWEEP_H_
#define PERSEUS_MEASURE_SIMULATED_SWEEP_H_

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

// How often the truth lies within the 95 % intervals of what a sweep finds.
namespace perseus::measure {

struct Noise {
  std::string name;
  bool heavy_tails = false;
  double drift = 0;  // Of times; of powers twice as much.
  double drift_seconds = 0;
  double heat = 0;  // See SimulatedPipeline.
  double heat_seconds = 120;
  double counter_lag_seconds = 0;
  double counter_duty = 1;
  double throttles_above = 0;  // Share of the highest clock; 0: never.
};

// Kind noise, heavy tails, and heavy tails with drifts of several lengths.
std::vector<Noise> Noises();
// What machines do besides: heat, counters that lag or look only now and then, throttling.
std::vector<Noise> Disturbances();

// Gives a pipeline this noise.
void Disturb(const Noise& noise, SimulatedPipeline* pipeline);

struct Share {
  std::int64_t within = 0;
  std::int64_t all = 0;
  void Count(bool is_within) {
    within += is_within ? 1 : 0;
    ++all;
  }
  double percent() const {
    return all == 0 ? 0 : 100.0 * static_cast<double>(within) / static_cast<double>(all);
  }
};

struct Coverage {
  int sweeps = 0;
  Share times;
  Share energies;
  Share blocking;
  Share waiting;  // By clock, of ranks that found it so.
  Share savings;
  std::int64_t doubtful = 0;  // Rows that say so; they do not count among times and energies.
  std::int64_t doubtful_waiting = 0;  // Likewise.
  double widths = 0;                  // Sum, of the intervals of savings, in points.
  double errors = 0;                  // Sum, of plans' savings over their true ones, in points.
  void Add(const Coverage& other);
};

// Counts the rows of a sweep, and its blocking powers. A card that warms up is judged by what it is
// at the end of the sweep: plans are run from then on.
void CountRows(const SimulatedPipeline& pipeline, const SimulatedResult& result,
               Coverage* coverage);

// By how much the rows of a sweep are off in the mean, as shares of the truth; signed. Rows that
// say that they are doubtful do not count.
struct Bias {
  double times = 0;  // Beside what the card is at the end of the sweep, as CountRows() has it.
  double energies = 0;
  // Of all clocks but the highest, beside the error at the highest: plans choose by this.
  double lowered_times = 0;
  double lowered_energies = 0;
};
Bias BiasOf(const SimulatedPipeline& pipeline, const SimulatedResult& result);

// Three stages whose forwards take `seconds` at the highest of `clocks` clocks.
SimulatedPipeline Modelled(double seconds, int clocks);

// One sweep of this noise.
void AddSweep(const Noise& noise, std::uint64_t seed, Coverage* coverage);

// For a table.
std::string Row(const std::string& name, const Coverage& coverage);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_SIMULATED_SWEEP_H_
