// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_NUMBERS_H_
#define PERSEUS_COMMON_NUMBERS_H_

#include <charconv>
#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

// Numbers in text, the same in every locale. The number must be the whole text.
namespace perseus {

// Without spaces and tabs at its ends.
std::string_view Trimmed(std::string_view text);

// Takes `unit`, and spaces before it, off the end of `text`: "1 %" is "1%" wherever a number may
// have a unit. False, and nothing taken, where `text` does not end with it.
bool TakeUnit(std::string_view* text, std::string_view unit);

// Nothing but an integer that T can hold.
template <std::integral T>
std::optional<T> ParseInteger(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

enum class NumberKind {
  kFinite,
  kNotFinite,  // "nan", "inf", or beyond what a double holds.
  kNone,       // No number at all.
};
struct Number {
  NumberKind kind = NumberKind::kNone;
  double value = 0;  // Where kind is kFinite.
};
// Of a cell: spaces may be around it, and one '+' before it.
Number ParseNumber(std::string_view text);

// A finite number, where no spaces are allowed; one '+' may be before it.
std::optional<double> ParseFinite(std::string_view text);

// What a unit after a number makes of it.
struct UnitScale {
  std::string_view name;
  double scale = 1;
};
// In seconds. Where units end alike, the longer one comes first.
inline constexpr UnitScale kTimeUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
// In watts.
inline constexpr UnitScale kPowerUnits[] = {{"MW", 1e6}, {"kW", 1e3}, {"W", 1}};
// How many times as much: "1.2x".
inline constexpr UnitScale kFactorUnits[] = {{"x", 1}};

// A finite number, alone or with the first of the units that the text ends with. Up to 15
// digits are kept as written: "1.005GHz" is 1005 MHz, not the 1004.9999999999999 of a product.
std::optional<double> ParseWithUnit(std::string_view text, std::span<const UnitScale> units);

}  // namespace perseus

#endif  // PERSEUS_COMMON_NUMBERS_H_
