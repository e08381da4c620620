// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CONDITIONS_H_
#define PERSEUS_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "perseus/export.h"

// What real GPUs do to a plan: times that vary, clocks that come late, changes
// that cost. docs/explanation/emulation.md defines every quantity.
PERSEUS_EXPORT_BEGIN
namespace perseus {

// Relative standard deviations (0.01 = 1 %), each <= kMostNoise. The
// distribution is bounded at 3.47 standard deviations. A time that is longer
// by a share takes as much more energy: the power stays.
struct TimeNoise {
  double per_computation = 0;  // Drawn anew for every computation of every iteration.
  double per_stage = 0;        // Drawn once for every stage, the same in all pipelines.
  double per_gpu = 0;          // Drawn once for every GPU; a rank goes as its slowest GPU.

  bool any() const { return per_computation > 0 || per_stage > 0 || per_gpu > 0; }
  friend bool operator==(const TimeNoise&, const TimeNoise&) = default;
};
inline constexpr double kMostNoise = 0.25;

// When the clock of a computation is called for.
enum class CallAhead : std::uint8_t {
  kNone,       // When it starts.
  kEnd,        // When the computation before it on the rank has ended.
  kPredicted,  // A latency before it is predicted to start, as the client does.
};
std::string_view CallAheadName(CallAhead call_ahead);  // "none", "end", "predicted"
std::optional<CallAhead> ParseCallAhead(std::string_view name);

// What a change of clock costs. A rank has one call under way at a time;
// newer targets wait for it, and the newest wins.
struct ClockSwitching {
  // From the call until the new clock is in effect. Work goes on meanwhile, at
  // the old clock.
  double latency_seconds = 0;
  // Standard deviation of the latency, drawn anew for each call; at most the latency.
  double latency_spread_seconds = 0;
  // So long a rank does nothing before a computation whose clock differs from
  // that of the one before.
  double stall_seconds = 0;
  CallAhead call_ahead = CallAhead::kNone;
  // Of kPredicted: a lower clock comes at most so much of the running
  // computation's time before its end.
  double max_early_loss = 0.05;
  // Least time from one call of a rank to its next.
  double min_interval_seconds = 0;

  bool any() const { return latency_seconds > 0 || stall_seconds > 0 || min_interval_seconds > 0; }
  friend bool operator==(const ClockSwitching&, const ClockSwitching&) = default;
};

// The conditions under which a plan must hold, and what may be given up.
struct Conditions {
  TimeNoise noise;
  ClockSwitching switching;
  // Counted for each change of clock beside what the replay itself shows.
  double change_joules = 0;
  // How much longer than at maximum clocks, under the same conditions, the mean
  // iteration may be (0.001 = 0.1 %) beyond the factor that the target asks for...
  double max_slowdown = 0.001;
  // ... with this probability, over what is drawn once and the error of the estimate.
  double confidence = 0.95;
  // Changes of clock in one iteration of one pipeline, all ranks together.
  std::optional<std::int64_t> max_changes;

  friend bool operator==(const Conditions&, const Conditions&) = default;
};

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_CONDITIONS_H_
