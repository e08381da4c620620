// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CONDITIONS_STATE_H_
#define PERSEUS_SERVER_PLANNING_CONDITIONS_STATE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/job_file.h"
#include "perseus/result.h"
#include "server/planning/measured_gaps.h"
#include "server/planning/measured_times.h"

// The conditions that a job's ranks measure, and those that its plans are made for.
namespace perseus::server {

// The figures that are measured. Noise: relative standard deviations; latency: seconds.
enum class Condition : std::uint8_t {
  kNoise,             // Of each computation.
  kRankNoise,         // Of a rank in an iteration.
  kNoiseCorrelation,  // From one computation of a rank to the next.
  kLatency,
  kLatencySpread,
  kStall,           // Of a rank, before a computation whose clock changes.
  kRareNoise,       // By how much of their time rare computations take longer,
  kRareNoiseShare,  // and how many of all these are.
};
inline constexpr std::size_t kConditions = 8;
// As job files call them.
inline constexpr std::array<std::string_view, kConditions> kConditionNames = {
    "noise",        "rank_noise", "noise_correlation", "switch_latency", "switch_latency_spread",
    "switch_stall", "rare_noise", "rare_noise_share"};

// The measurement of one of them.
struct MeasuredCondition {
  double value = 0;
  double error = 0;        // Standard error.
  std::int64_t ranks = 0;  // That it comes from. 0: it was not measured.

  friend bool operator==(const MeasuredCondition&, const MeasuredCondition&) = default;
};

// The latency of calls for one clock.
struct MeasuredClockLatency {
  int clock_mhz = 0;
  MeasuredCondition seconds = {};

  friend bool operator==(const MeasuredClockLatency&, const MeasuredClockLatency&) = default;
};

struct MeasuredConditions {
  std::array<MeasuredCondition, kConditions> figures = {};  // [Condition]
  std::int64_t iterations = 0;  // That the noise of the rank that saw most comes from,
  std::int64_t calls = 0;       // and clock calls of all ranks.
  std::vector<MeasuredClockLatency> latency_at = {};  // By clock, lowest first.
  // Sure ones, by key. The store does not keep these two.
  std::vector<MeasuredTime> times = {};
  std::vector<MeasuredTransfer> transfers = {};

  const MeasuredCondition& Of(Condition which) const {
    return figures[static_cast<std::size_t>(which)];
  }
  // The most ranks of any figure.
  std::int64_t ranks() const;
  friend bool operator==(const MeasuredConditions&, const MeasuredConditions&) = default;
};

// Conditions that plans are made for, beside those that the settings give.
struct PlannedConditions {
  // [Condition]. At first assumed: noise of one per cent, clocks after 20 +- 5 ms, as in published
  // measurements.
  std::array<double, kConditions> values = {0.01, 0, 0, 0.020, 0.005, 0, 0, 0};
  std::array<bool, kConditions> measured = {};  // [Condition] What is not is assumed.
  // Clocks whose calls take another time than kLatency, lowest first.
  std::vector<MeasuredClockLatency> latency_at = {};
  std::vector<MeasuredTime> times = {};  // That correct the profile.
  std::vector<MeasuredTransfer> transfers = {};

  double Of(Condition which) const { return values[static_cast<std::size_t>(which)]; }
  bool IsMeasured(Condition which) const { return measured[static_cast<std::size_t>(which)]; }
  bool any_measured() const;
  friend bool operator==(const PlannedConditions&, const PlannedConditions&) = default;
};

// A job's measurements, as the library keeps them with the profile that the job used.
struct KeptConditions {
  std::string job = {};
  double at_seconds = 0;             // Time of day.
  MeasuredConditions measured = {};  // Sure figures; others come from no ranks.

  friend bool operator==(const KeptConditions&, const KeptConditions&) = default;
};

// All of it, as the store keeps it in the column jobs.conditions.
struct ConditionsState {
  PlannedConditions plan = {};                 // The present plans are made for these,
  std::optional<PlannedConditions> next = {};  // and those for these are being made.
  double planned_at_seconds = 0;               // Time of day; 0: the plans are the first.
  MeasuredConditions measured = {};
  std::string profile = {};                  // The library's that the job uses. Empty: none.
  std::optional<KeptConditions> start = {};  // The first plans were made for it,
  std::string start_profile = {};            // and it came with this profile.

  // Whether plans are made for a value that another job measured.
  bool IsFromStart(Condition which) const {
    return start && start->measured.Of(which).ranks > 0 && !plan.IsMeasured(which);
  }

  friend bool operator==(const ConditionsState&, const ConditionsState&) = default;
};

std::string FormatConditionsState(const ConditionsState& state);
// None: "", or text that FormatConditionsState() would not write.
std::optional<ConditionsState> ParseConditionsState(const std::string& json);
// The same for the column profiles.conditions. None, too: figures that no plan can be made for.
std::string FormatKeptConditions(const KeptConditions& kept);
std::optional<KeptConditions> ParseKeptConditions(const std::string& json);

// A figure differs from the planned one if it does by more than so many standard errors.
inline constexpr double kErrorsApart = 3;
// A figure is sure if its error is at most this share of it, or less than a plan can tell.
inline constexpr double kSureShare = 1.0 / 3;
inline constexpr double kSureLatencySeconds = 0.003;
inline constexpr double kFeltLatencySeconds = 0.002;  // Less makes no difference to a plan.

// Whether a latency is sure enough to plan for.
bool IsSureLatency(const MeasuredCondition& latency);
// The clocks whose latency surely is another one than `of_all`, by more than a plan feels.
std::vector<MeasuredClockLatency> OwnLatencies(const std::vector<MeasuredClockLatency>& latencies,
                                               double of_all);
// `measured`, and the known latencies of clocks of which it is not sure. Lowest first.
std::vector<MeasuredClockLatency> WithKnown(std::vector<MeasuredClockLatency> measured,
                                            const std::vector<MeasuredClockLatency>& known);
// The value that plans assume for a figure: 0 for noise that cannot be told from none.
double ValueOf(const MeasuredConditions& measured, Condition which);
// Sets the measured conditions, where the settings say nothing.
void SetMeasured(const MeasuredConditions& measured, JobFile* settings);

// Sets noise and latency, and, where the settings say nothing else, that clocks are called for as
// Perseus' client does.
void SetConditions(const PlannedConditions& planned, JobFile* settings);

// Sets the transfers between stages, unless the settings say how long these take.
void SetTransfers(const std::vector<MeasuredTransfer>& transfers, int num_stages,
                  JobFile* settings);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CONDITIONS_STATE_H_
