// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_QUANTITY_TEXT_H_
#define PERSEUS_JOB_QUANTITY_TEXT_H_

#include <span>
#include <string_view>

#include "common/numbers.h"
#include "common/tree_reader.h"
#include "perseus/result.h"

namespace perseus::job {

// The kind and units of a number. The default is a number without unit.
struct Quantity {
  std::string_view name;             // The unit of a number that is written without one: "watts".
  std::string_view examples;         // "75 or 75W"
  std::span<const UnitScale> units;  // The units that may follow the number.
};

inline constexpr UnitScale kEnergyUnits[] = {{"kJ", 1e3}, {"mJ", 1e-3}, {"J", 1}};
inline constexpr UnitScale kHourUnits[] = {{"h", 1}};

inline constexpr Quantity kInWatts = {"watts", "75 or 75W", kPowerUnits};
inline constexpr Quantity kInWattsOrAuto = {"watts", "2, 2W or auto", kPowerUnits};
inline constexpr Quantity kInJoules = {"joules", "2 or 2J", kEnergyUnits};
inline constexpr Quantity kInSeconds = {"seconds", "2 or 500ms", kTimeUnits};
inline constexpr Quantity kInHours = {"hours", "50000 or 50000h", kHourUnits};
inline constexpr Quantity kInTimes = {"", "1.2 or 1.2x", kFactorUnits};

// Parses "75", "75W" or "0.3 kW", for job files and flags. `range` must have both ends, in the unit
// of a number without unit.
Result<double> ParseQuantity(std::string_view text, const NumberRange& range,
                             const Quantity& quantity = {});

}  // namespace perseus::job

#endif  // PERSEUS_JOB_QUANTITY_TEXT_H_
