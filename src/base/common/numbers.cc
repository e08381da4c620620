// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/numbers.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace perseus {
namespace {

Number ParseWhole(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return {};
  if (error != std::errc() || !std::isfinite(value)) return {NumberKind::kNotFinite, 0};
  return {NumberKind::kFinite, value};
}

// Takes a unit off the end of the text, and returns its scale; 1 where it ends with none.
double TakeScale(std::span<const UnitScale> units, std::string_view* text) {
  for (const UnitScale& unit : units) {
    if (TakeUnit(text, unit.name)) return unit.scale;
  }
  return 1;
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

bool TakeUnit(std::string_view* text, std::string_view unit) {
  if (!text->ends_with(unit)) return false;
  text->remove_suffix(unit.size());
  while (text->ends_with(' ')) text->remove_suffix(1);
  return true;
}

Number ParseNumber(std::string_view text) { return ParseWhole(Trimmed(text)); }

std::optional<double> ParseFinite(std::string_view text) {
  const Number number = ParseWhole(text);
  if (number.kind != NumberKind::kFinite) return std::nullopt;
  return number.value;
}

std::optional<double> ParseWithUnit(std::string_view text, std::span<const UnitScale> units) {
  const double scale = TakeScale(units, &text);
  const std::optional<double> number = ParseFinite(text);
  if (!number) return std::nullopt;
  if (scale == 1) return *number + 0.0;  // No "-0" for a user to read.
  const double value = *number * scale;
  if (!std::isfinite(value)) return std::nullopt;
  constexpr int kKeptDigits = 15;
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value + 0.0,
                                          std::chars_format::scientific, kKeptDigits - 1);
  if (error != std::errc()) return std::nullopt;
  return ParseFinite({digits.data(), end});
}

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
