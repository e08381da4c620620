// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_CLOCK_STATE_H_
#define PERSEUS_EMULATE_CLOCK_STATE_H_

#include <compare>
#include <cstdint>

namespace perseus::emulate {

inline constexpr int kNoCall = -1;

// The clock of one rank. One call to change it is under way at a time; the
// newest knob that was asked for waits for it. Times count from the start of the
// iteration.
struct ClockState {
  int in_effect = 0;     // Knob.
  int newest = 0;        // Asked for last.
  int target = kNoCall;  // Of the call under way.
  double call_end_seconds = 0;

  bool calling() const { return target != kNoCall; }

  // Ends the calls that end by `seconds`, and begins those that follow them.
  void Advance(double seconds, double latency_seconds, std::int64_t* calls) {
    while (calling() && call_end_seconds <= seconds) {
      in_effect = target;
      target = kNoCall;
      if (newest != in_effect) Begin(call_end_seconds, latency_seconds, calls);
    }
    if (!calling()) call_end_seconds = 0;
  }

  // Asks for a knob. `seconds` never goes back from one call of these functions
  // to the next.
  void Ask(int knob, double seconds, double latency_seconds, std::int64_t* calls) {
    Advance(seconds, latency_seconds, calls);
    newest = knob;
    if (!calling() && in_effect != knob) Begin(seconds, latency_seconds, calls);
    Advance(seconds, latency_seconds, calls);
  }

  // To the start of the next iteration.
  void EndIteration(double iteration_seconds, double latency_seconds, std::int64_t* calls) {
    Advance(iteration_seconds, latency_seconds, calls);
    if (calling()) call_end_seconds -= iteration_seconds;
  }

  friend auto operator<=>(const ClockState&, const ClockState&) = default;

 private:
  void Begin(double seconds, double latency_seconds, std::int64_t* calls) {
    target = newest;
    call_end_seconds = seconds + latency_seconds;
    ++*calls;
  }
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_CLOCK_STATE_H_
