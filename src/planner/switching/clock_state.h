// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_CLOCK_STATE_H_
#define PERSEUS_SWITCHING_CLOCK_STATE_H_

#include <algorithm>
#include <compare>

#include "perseus/conditions.h"

namespace perseus::switching {

inline constexpr int kNoCall = -1;

// The clock of one rank: what stays from one iteration to the next. One call to
// change it is under way at a time. Knobs are indices into
// CostedPipeline::knobs; times count from the start of the iteration.
struct ClockState {
  int in_effect = 0;
  int newest = 0;        // Asked for last; called for as soon as a call may begin.
  int planned = 0;       // Of the computation that started last.
  int target = kNoCall;  // Of the call under way.
  int calls = 0;         // That began in this iteration.
  double call_end_seconds = 0;
  double allowed_seconds = 0;  // No call begins before.

  bool calling() const { return target != kNoCall; }

  friend auto operator<=>(const ClockState&, const ClockState&) = default;
};

// Of a rank that has had the clock of a computation for long.
inline ClockState SettledAt(int knob) {
  return {.in_effect = knob, .newest = knob, .planned = knob};
}

// ClockSwitching, and what follows from it (docs/explanation/emulation.md, "Clocks").
struct SwitchingRules {
  SwitchingRules(const ClockSwitching& conditions, bool numbers)
      : switching(conditions), knobs_are_numbers(numbers) {}

  ClockSwitching switching;
  bool knobs_are_numbers = true;  // Falling; else every change is taken for one to a lower clock.

  // False: every clock is in effect the moment it is asked for.
  bool late() const { return switching.latency_seconds > 0 || switching.min_interval_seconds > 0; }
  bool predicts() const { return switching.call_ahead == CallAhead::kPredicted; }
  // What the client measures of latencies: the 90th percentile, and the least of 64.
  double high_seconds() const {
    return switching.latency_seconds + 1.3 * switching.latency_spread_seconds;
  }
  double least_seconds() const {
    return std::max(0.0, switching.latency_seconds - 2.2 * switching.latency_spread_seconds);
  }
  // A clock that comes so soon after the start is in time: predicted starts are
  // met to the last digit, and rounding must not tell late from in time.
  double tolerance_seconds() const { return 1e-6 * switching.latency_seconds; }
  bool Lowers(int from, int to) const { return !knobs_are_numbers || to > from; }
};

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_CLOCK_STATE_H_
