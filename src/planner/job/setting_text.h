// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_SETTING_TEXT_H_
#define PERSEUS_JOB_SETTING_TEXT_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/numbers.h"
#include "common/tree.h"
#include "perseus/conditions.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

namespace perseus::job {

// The kind and units of a number. The default is a number without unit.
struct Quantity {
  std::string_view name;             // The unit of a number that is written without one: "watts".
  std::string_view examples;         // "75 or 75W"
  std::span<const UnitScale> units;  // The units that may follow the number.
};

inline constexpr UnitScale kEnergyUnits[] = {{"kJ", 1e3}, {"mJ", 1e-3}, {"J", 1}};

inline constexpr Quantity kInWatts = {"watts", "75 or 75W", kPowerUnits};
inline constexpr Quantity kInWattsOrAuto = {"watts", "2, 2W or auto", kPowerUnits};
inline constexpr Quantity kInJoules = {"joules", "2 or 2J", kEnergyUnits};
inline constexpr Quantity kInSeconds = {"seconds", "2 or 500ms", kTimeUnits};
inline constexpr Quantity kInTimes = {"", "1.2 or 1.2x", kFactorUnits};

// Parses "75", "75W" or "0.3 kW", for job files and flags. `range` must have both ends, in the unit
// of a number without unit.
Result<double> ParseQuantity(std::string_view text, const NumberRange& range,
                             const Quantity& quantity = {});

// Parses "0.02", "0.02s", "20ms" or "500us" to seconds, for job files and flags. At most
// kMaxSeconds (job/limits.h).
Result<double> ParseDuration(std::string_view text);

// The same, and also "2min", "1h", "30d": for what may last long. At most 1e9 s.
Result<double> ParseLongDuration(std::string_view text);

// Parses "1410=9ms,600=30ms", for job files and flags.
Result<std::vector<ClockLatency>> ParseClockLatencies(std::string_view text);
// The same text, in seconds.
std::string ClockLatenciesText(const std::vector<ClockLatency>& latencies);

// Parses "15ms", "10ms-30ms" or "10-30ms", for job files and flags. `parse` reads one number with
// its unit. The first may leave its unit to the second.
Result<ValueRange> ParseValueRange(std::string_view text,
                                   const std::function<Result<double>(std::string_view)>& parse);

// Parses a share, "1%" or "0.01", for job files and flags.
Result<double> ParseShare(std::string_view text, const NumberRange& range);
// Checks a share that is given as a number.
Result<double> CheckShare(double share, const NumberRange& range);

// Parses "2sigma", "1%", or both ("2sigma,1%": the larger one counts).
Result<TimeMargin> ParseTimeMargin(std::string_view text);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_SETTING_TEXT_H_
