// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/cells.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "common/nearest_name.h"

namespace perseus {
namespace {

// No time or energy of a GPU comes near; sums over ranks stay finite.
constexpr double kLargestQuantity = 1e12;

// std::from_chars takes neither spaces nor '+'.
}  // namespace

Parsed<double> ParseQuantity(const CsvCell& cell, std::string_view name, Minimum minimum) {
  const std::string_view unit = name.starts_with("time") ? "seconds" : "joules";
  const std::string_view range = minimum == Minimum::kAboveZero ? "above 0" : "0 or more";
  const auto problem = [&](std::string_view what) {
    return ProblemAt(cell.offset,
                     fmt::format("{} {} {}; expected {}, {}", name,
                                 cell.text.empty() ? "cell" : Shown(cell.text), what, unit, range));
  };
  if (cell.text.empty()) return problem("is empty");
  const Number number = ParseNumber(cell.text);
  if (number.kind == NumberKind::kNone) return problem("is not a number");
  if (number.kind == NumberKind::kNotFinite) return problem("is not a finite number");
  if (number.value < 0) return problem("is negative");
  if (number.value == 0 && minimum == Minimum::kAboveZero) return problem("is zero");
  if (number.value > kLargestQuantity) return problem("is impossibly large");
  return number.value;
}

Parsed<int> ParseIndex(const CsvCell& cell, std::string_view name, int highest) {
  std::string_view digits = Trimmed(cell.text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_integer =
      error != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (is_integer && error == std::errc() && value >= 0 && value <= highest) return value;
  const std::string_view what = cell.text.empty()       ? "is empty"
                                : !is_integer           ? "is not a whole number"
                                : digits.front() == '-' ? "is negative"
                                                        : "is too large";
  return ProblemAt(cell.offset,
                   fmt::format("{} {} {}; expected a whole number from 0 to {}", name,
                               cell.text.empty() ? "cell" : Shown(cell.text), what, highest));
}

}  // namespace perseus
