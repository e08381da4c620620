// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_KIND_H_
#define PERSEUS_MEASURE_KIND_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/computation.h"

namespace perseus::measure {

// A kind of computation: one type in one stage.
struct Kind {
  ComputationType type = ComputationType::kForward;
  int stage = -1;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

// The clock of what is measured at default clocks: as the card runs a job without Perseus.
inline constexpr int kDefaultClockMhz = 0;

// The estimated cost of computations of one kind at one clock. `..._std` are standard errors of the
// estimates; `..._residual_std` are standard deviations of single computations.
inline constexpr std::size_t kErrorSources = 8;  // At most, of times and of powers.
struct Estimate {
  Kind kind;
  int mhz = 0;  // Or kDefaultClockMhz.
  double seconds = 0;
  double joules = 0;
  std::int64_t samples = 0;  // 0: not measured, but interpolated between neighbouring clocks.
  double seconds_std = 0;
  double joules_std = 0;
  // How the errors of a rank's rows hang together. A thorough fit has kErrorSources sources of
  // errors, each with a standard normal value for all rows: source k adds time_errors[k] times its
  // value to the logarithm of the time; others add power_errors[k] to that of the power. What
  // `..._std` says beyond these is the row's own.
  std::vector<double> time_errors;
  std::vector<double> power_errors;
  double seconds_residual_std = 0;
  double joules_residual_std = 0;
  // If the trainer reports how much work each computation does: the mean over all clocks, for which
  // `seconds` and `joules` hold. 0: not reported.
  double work = 0;
  // Set if the work varies. A computation of `work + d` takes seconds + d * seconds_per_work.
  std::optional<double> seconds_per_work;
  std::optional<double> joules_per_work;
  std::optional<double> temperature_celsius;  // Mean.
  bool throttled = false;                     // The card was throttled meanwhile.
};

// Whether it is worth measuring again, and plans should not rest on it: measured while the card was
// throttled, or with an error that is too wide.
inline constexpr double kDoubtfulError = 0.05;  // Relative.
inline bool IsDoubtful(const Estimate& row) {
  return row.throttled || row.joules_std > kDoubtfulError * row.joules ||
         row.seconds_std > kDoubtfulError * row.seconds;
}

// Power of a rank that waits for its neighbours.
struct BlockingPower {
  double watts = 0;
  double watts_std = 0;
};

// The same at a clock.
struct WaitingRow {
  int mhz = 0;
  BlockingPower power;
};

// Whether plans should not rest on it. Waiting is a small part of the energy, so its power may be
// less sure than that of computations.
inline constexpr double kDoubtfulWaitingError = 0.1;  // Relative.
inline bool IsDoubtful(const WaitingRow& row) {
  return row.power.watts_std > kDoubtfulWaitingError * row.power.watts;
}

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_KIND_H_
