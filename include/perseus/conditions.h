// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CONDITIONS_H_
#define PERSEUS_CONDITIONS_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "perseus/export.h"
#include "perseus/result.h"

// Effects of real GPUs on a plan: times that vary, clocks that come late, changes that cost.
// docs/explanation/emulation.md defines every quantity.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// Relative standard deviations of times (0.01 = 1 %), 0 to 0.25. No draw is further from the mean
// than 3.47 standard deviations. A computation that takes 1 % longer uses 1 % more energy: its
// power stays the same.
struct TimeNoise {
  double per_computation = 0;  // Drawn anew for every computation of every iteration.
  double per_stage = 0;        // Drawn once for every stage, the same in all pipelines.
  double per_gpu = 0;          // Drawn once for every GPU; a rank is as slow as its slowest GPU.
  double per_rank = 0;         // Drawn anew for every rank of every iteration.
  // Of per_computation: between a computation and the next of its rank in an iteration, 0 to below
  // 1. Each iteration begins anew.
  double correlation = 0;
  // Now and then a computation takes much longer: a share `rare_share` of all, by rare_length of
  // their time in the mean and three times that at most. The mean of all stays as it is.
  double rare_length = 0;
  double rare_share = 0;

  bool any() const { return each_iteration() || once(); }
  bool each_iteration() const { return per_computation > 0 || per_rank > 0 || has_rare(); }
  bool has_rare() const { return rare_length > 0 && rare_share > 0; }
  bool once() const { return per_stage > 0 || per_gpu > 0; }
  friend bool operator==(const TimeNoise&, const TimeNoise&) = default;
};

// The values of a condition: from `least` to `most`. A plain number is a range of one value.
struct ValueRange {
  double least = 0;
  double most = 0;

  constexpr ValueRange() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): whoever knows one number gives that.
  constexpr ValueRange(double value) : least(value), most(value) {}
  constexpr ValueRange(double from, double to) : least(from), most(to) {}

  constexpr bool is_one() const { return least == most; }
  constexpr double middle() const { return is_one() ? least : (least + most) / 2; }
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// When the call is made that sets the clock of a computation.
enum class CallAhead : std::uint8_t {
  kNone,       // When it starts.
  kEnd,        // When the computation before it on the rank has ended.
  kPredicted,  // One latency before its predicted start. That is what the client does.
};
std::string_view CallAheadName(CallAhead call_ahead);  // "none", "end", "predicted"
std::optional<CallAhead> ParseCallAhead(std::string_view name);

// How long calls for one clock take.
struct ClockLatency {
  double clock = 0;  // The number of a knob: MHz, or what Profile::knob_unit says.
  double seconds = 0;

  friend bool operator==(const ClockLatency&, const ClockLatency&) = default;
};

// The cost of a change of clock. A rank has one call under way at a time. Clocks that are wanted
// meanwhile wait for it, and only the newest of them is then called for.
struct ClockSwitching {
  // From the call until the new clock is in effect. Meanwhile work goes on at the old clock.
  double latency_seconds = 0;
  // Clocks whose calls take another time than latency_seconds, in any order; each clock once.
  std::vector<ClockLatency> latency_at = {};
  // Standard deviation of the latency, drawn anew for each call; at most latency_seconds. Of a
  // clock in latency_at whose calls take less than that: as much as they take.
  double latency_spread_seconds = 0;
  // How long a rank does nothing before a computation whose clock differs from the one before.
  double stall_seconds = 0;
  CallAhead call_ahead = CallAhead::kNone;
  // For kPredicted: a lower clock may come early by at most this share of the running computation's
  // time.
  double max_early_loss = 0.05;
  // Least time from one call of a rank to its next.
  double min_interval_seconds = 0;

  bool any() const { return latency_seconds > 0 || stall_seconds > 0 || min_interval_seconds > 0; }
  friend bool operator==(const ClockSwitching&, const ClockSwitching&) = default;
};

// An error says what is wrong with ClockSwitching::latency_at.
Result<void> CheckClockLatencies(const ClockSwitching& switching);

// Conditions that are known as ranges. Each contains the value in Conditions::noise or
// Conditions::switching, which is what figures stand for. Without: that value alone.
struct ConditionRanges {
  std::optional<ValueRange> noise = {};                   // TimeNoise::per_computation
  std::optional<ValueRange> rank_noise = {};              // TimeNoise::per_rank
  std::optional<ValueRange> switch_latency_seconds = {};  // ClockSwitching::latency_seconds

  bool any() const { return noise || rank_noise || switch_latency_seconds; }
  friend bool operator==(const ConditionRanges&, const ConditionRanges&) = default;
};

// The conditions under which a plan must hold, and what may be given up.
struct Conditions {
  TimeNoise noise = {};
  ClockSwitching switching = {};
  // A price that is added for each change of clock. The replay counts latency and stalls by itself.
  double change_joules = 0;
  // How much slower the mean iteration may be than maximum clocks under the same conditions
  // (0.001 = 0.1 %). It comes on top of the factor that the target asks for.
  double max_slowdown = 0.001;
  // The probability that a plan keeps to max_slowdown, over the draws that are made once per job
  // and the error of the estimate.
  double confidence = 0.95;
  // At most this many changes of clock in one iteration of one pipeline, all ranks together.
  // Without: any number.
  std::optional<std::int64_t> max_changes = {};
  // Count the profile's standard errors (CostedPipeline::errors): the plan also holds if times of
  // lowered clocks are off by them, drawn once per job.
  bool profile_errors = true;
  // A plan keeps to max_slowdown at each corner of these ranges.
  ConditionRanges ranges = {};

  friend bool operator==(const Conditions&, const Conditions&) = default;
};

// The conditions without their ranges, and then those at each corner of the ranges: with the least
// or the most of each. The least latency does not spread. ClockSwitching::latency_at changes by
// as much as the latency, to 0 at the least.
std::vector<Conditions> CornersOf(const Conditions& conditions);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_CONDITIONS_H_
