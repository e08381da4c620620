// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_MEASURE_SWEEP_COVERAGE_H_
#define PERSEUS_TESTS_MEASURE_SWEEP_COVERAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "measure/simulated_sweep.h"

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

#endif  // PERSEUS_TESTS_MEASURE_SWEEP_COVERAGE_H_
