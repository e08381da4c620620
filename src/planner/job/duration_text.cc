// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/duration_text.h"

#include <fmt/format.h>

#include <optional>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/limits.h"

namespace perseus::job {

Result<double> ParseDuration(std::string_view text) {
  const std::optional<double> value = ParseWithUnit(text, kTimeUnits);
  if (!value || *value < 0 || *value > kMaxSeconds) {
    return InvalidInput(fmt::format(
        "expected seconds (0.02), or a number with a unit (20ms, 500us), not negative and at most "
        "{}, got {}",
        kMaxSeconds, Shown(text)));
  }
  return *value;
}

Result<double> ParseLongDuration(std::string_view text) {
  constexpr double kMostLongSeconds = 1e9;
  constexpr UnitScale kLongUnits[] = {{"min", 60}, {"h", 3600}, {"d", 86400}};
  std::optional<double> value = ParseWithUnit(text, kLongUnits);
  if (!value) value = ParseWithUnit(text, kTimeUnits);
  if (!value || *value < 0 || *value > kMostLongSeconds) {
    return InvalidInput(fmt::format(
        "expected seconds (90), or a number with a unit (20ms, 90s, 15min, 1h, 30d), not negative "
        "and at most {} s, got '{}'",
        kMostLongSeconds, text));
  }
  return *value;
}

}  // namespace perseus::job
