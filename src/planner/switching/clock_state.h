// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_CLOCK_STATE_H_
#define PERSEUS_SWITCHING_CLOCK_STATE_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "switching/look_ahead.h"

namespace perseus::switching {

inline constexpr int kNoCall = -1;

// The state of one rank's clock, which carries over from one iteration to the next. Only one clock
// call is under way at a time. Knobs are indices into CostedPipeline::knobs; times count from the
// start of the iteration.
struct ClockState {
  int in_effect = 0;
  int newest = 0;        // The last knob that was requested; its call begins as soon as allowed.
  int planned = 0;       // Planned knob of the computation that started last.
  int target = kNoCall;  // Knob of the call under way.
  int calls = 0;         // Number of calls that began in this iteration.
  double call_end_seconds = 0;
  double allowed_seconds = 0;  // No call may begin before this time.

  bool calling() const { return target != kNoCall; }

  friend auto operator<=>(const ClockState&, const ClockState&) = default;
};

// The state of a rank whose clock has been at `knob` for long.
inline ClockState SettledAt(int knob) {
  return {.in_effect = knob, .newest = knob, .planned = knob};
}

// [knob] How long calls for it take in the mean.
std::vector<double> LatenciesOf(const ClockSwitching& switching, const CostedPipeline& pipeline);

// ClockSwitching, with values derived from it (docs/explanation/emulation.md, "Clocks").
struct SwitchingRules {
  SwitchingRules(const ClockSwitching& conditions, const CostedPipeline& pipeline)
      : switching(conditions),
        knobs_are_numbers(pipeline.knobs_are_numbers),
        latencies(LatenciesOf(conditions, pipeline)) {
    for (std::size_t knob = 0; knob < latencies.size(); ++knob) {
      most_high_seconds = std::max(most_high_seconds, high_seconds(static_cast<int>(knob)));
    }
  }

  ClockSwitching switching;
  // Knobs are numbers in descending order. If false, every change counts as one to a lower clock.
  bool knobs_are_numbers = true;
  std::vector<double> latencies;  // [knob] Mean, in seconds.
  double most_high_seconds = 0;   // high_seconds() of any knob.

  // False: every clock takes effect at the moment of its request.
  bool late() const { return switching.latency_seconds > 0 || switching.min_interval_seconds > 0; }
  // Whether a rank may wait at a clock of its own: nobody stalls for it, and where clocks come late
  // it is known when to call.
  bool may_wait_cheaply() const { return switching.stall_seconds == 0 && (!late() || predicts()); }
  bool predicts() const { return switching.call_ahead == CallAhead::kPredicted; }
  double latency_seconds(int knob) const { return latencies[static_cast<std::size_t>(knob)]; }
  double spread_seconds(int knob) const {
    return std::min(switching.latency_spread_seconds, latency_seconds(knob));
  }
  // The latencies that the client measures; see CallTime.
  double high_seconds(int knob) const {
    return latency_seconds(knob) + kHighSpreads * spread_seconds(knob);
  }
  double least_seconds(int knob) const {
    return std::max(0.0, latency_seconds(knob) - kLeastSpreads * spread_seconds(knob));
  }
  // A clock that takes effect within this time after a start is not late. Predicted starts are
  // often exact, so rounding errors alone must not make a clock late.
  double tolerance_seconds() const { return 1e-6 * switching.latency_seconds; }
  bool Lowers(int from, int to) const { return !knobs_are_numbers || to > from; }
};

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_CLOCK_STATE_H_
