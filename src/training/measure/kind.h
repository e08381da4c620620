// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_KIND_H_
#define PERSEUS_MEASURE_KIND_H_

#include <compare>
#include <cstdint>
#include <optional>

#include "perseus/computation.h"

namespace perseus::measure {

// What is measured: the computations of one type of one stage.
struct Kind {
  ComputationType type = ComputationType::kForward;
  int stage = -1;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

// What computations of one kind cost at one clock. The `_std` are standard errors
// of the estimates; the `_residual_std` spreads of single computations.
struct Estimate {
  Kind kind;
  int mhz = 0;
  double seconds = 0;
  double joules = 0;
  std::int64_t samples = 0;  // 0: not measured, but read off the curve between its neighbours.
  double seconds_std = 0;
  double joules_std = 0;
  double seconds_residual_std = 0;
  double joules_residual_std = 0;
  // Where the trainer says how much work a computation is: the mean of all clocks, for
  // which `seconds` and `joules` hold; 0: not known.
  double work = 0;
  // Where it varies; else none. At `work + d`: seconds + d * seconds_per_work.
  std::optional<double> seconds_per_work;
  std::optional<double> joules_per_work;
  std::optional<double> temperature_celsius;  // Mean.
  bool throttled = false;                     // The card was held back meanwhile.
};

// Power of a rank that waits for its neighbours.
struct BlockingPower {
  double watts = 0;
  double watts_std = 0;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_KIND_H_
