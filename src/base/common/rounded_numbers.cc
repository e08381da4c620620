// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/rounded_numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace perseus {

bool SameButRounding(double a, double b) {
  constexpr double kRelative = 1e-12;
  return std::abs(a - b) <= kRelative * std::abs(b);
}

std::string RoundedUp(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
    const double nearest = std::round(value * scale) / scale;
    if (SameButRounding(nearest, value)) return fmt::format("{:.{}g}", nearest, digits);
    const double rounded = std::ceil(value * scale) / scale;
    if (rounded >= value) return fmt::format("{:.{}g}", rounded, digits);
  }
  return fmt::format("{}", value);
}

std::string RoundedBelow(double value, double limit) {
  const std::string rounded = fmt::format("{:.6g}", value);
  return rounded == fmt::format("{:.6g}", limit) ? fmt::format("{}", value) : rounded;
}

}  // namespace perseus
