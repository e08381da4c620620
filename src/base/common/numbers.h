// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_NUMBERS_H_
#define PERSEUS_COMMON_NUMBERS_H_

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

// Numbers in text, the same in every locale. The number must be the whole text.
namespace perseus {

// Without spaces and tabs at its ends.
std::string_view Trimmed(std::string_view text);

// Removes `unit`, and spaces before it, from the end of `text`, so that "1 %" means "1%"
// everywhere. Returns false and changes nothing if `text` does not end with `unit`.
bool TakeUnit(std::string_view* text, std::string_view unit);

// Parses a text that is an integer which fits into T.
template <std::integral T>
std::optional<T> ParseInteger(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

enum class NumberKind {
  kFinite,
  kNotFinite,  // "nan", "inf", or too large for a double.
  kNone,       // Not a number.
};
struct Number {
  NumberKind kind = NumberKind::kNone;
  double value = 0;  // Set if kind is kFinite.
};
// Parses a table cell: spaces around the number and one '+' before it are allowed.
Number ParseNumber(std::string_view text);

// Parses a finite number. One '+' before it is allowed, spaces are not.
std::optional<double> ParseFinite(std::string_view text);

// A unit, and the factor by which it multiplies the number before it.
struct UnitScale {
  std::string_view name;
  double scale = 1;
};
// Scales to seconds. If one unit is the end of another ("s", "ms"), the longer one comes first.
inline constexpr UnitScale kTimeUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
// Scales to watts.
inline constexpr UnitScale kPowerUnits[] = {{"MW", 1e6}, {"kW", 1e3}, {"W", 1}};
// For factors: "1.2x".
inline constexpr UnitScale kFactorUnits[] = {{"x", 1}};

// Parses a finite number with or without one of `units`. Up to 15 digits are exact: "1.005GHz" is
// 1005 MHz, and not 1004.9999999999999 as from a multiplication.
std::optional<double> ParseWithUnit(std::string_view text, std::span<const UnitScale> units);

}  // namespace perseus

// Numbers for messages, with as few digits as possible.
namespace perseus {

// Whether a and b differ only by rounding errors.
bool SameButRounding(double a, double b);

// `value` > 0 with six digits, or more if it would otherwise become less than `value`. For advice
// in messages, which must work when followed.
std::string RoundedUp(double value);

// `value` with six digits, or more if it would otherwise look equal to `limit`, which is greater.
std::string RoundedBelow(double value, double limit);

// The value in the middle; of an even number the upper one of the two there, so that it is always
// one of the values. 0: there are none.
inline double UpperMedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median: of an even number, halfway between the two in the middle. 0: there are none. Reorders
// `values`.
template <typename T>
double MedianOf(std::span<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  const double lower = *std::max_element(values.begin(), middle);
  return (lower + upper) / 2;
}
template <typename T>
double MedianOf(std::vector<T>& values) {
  return MedianOf(std::span<T>(values));
}

}  // namespace perseus

#endif  // PERSEUS_COMMON_NUMBERS_H_
