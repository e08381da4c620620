// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/quantity_text.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "common/nearest_name.h"

namespace perseus::job {
namespace {

std::string EndsOf(const NumberRange& range) {
  if (range.above_least && range.below_most) {
    return fmt::format("between {} and {} (neither included)", range.least, range.most);
  }
  if (range.above_least) return fmt::format("above {} and at most {}", range.least, range.most);
  return fmt::format("from {} to {}", range.least, range.most);
}

}  // namespace

Result<double> ParseQuantity(std::string_view text, const NumberRange& range,
                             const Quantity& quantity) {
  if (const std::optional<double> value = ParseWithUnit(text, quantity.units)) {
    const bool above = range.above_least ? *value > range.least : *value >= range.least;
    const bool below = range.below_most ? *value < range.most : *value <= range.most;
    if (above && below) return *value;
  }
  return InvalidInput(fmt::format(
      "expected a number{} {}{}, got {}",
      quantity.name.empty() ? "" : fmt::format(" of {}", quantity.name), EndsOf(range),
      quantity.examples.empty() ? "" : fmt::format(" ({})", quantity.examples), Shown(text)));
}

}  // namespace perseus::job
