// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/value_parsers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace perseus::cli {
namespace {

constexpr double kMostWatts = 1e6;
constexpr double kMostSeconds = 1e6;

// The whole of `text` as a finite number.
bool ReadNumber(std::string_view text, double* number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *number);
  return !text.empty() && result.ec == std::errc() && result.ptr == end && std::isfinite(*number);
}

template <typename Parser>
Result<std::vector<double>> ParseList(std::string_view text, const Parser& parse) {
  std::vector<double> values;
  while (true) {
    const std::size_t comma = text.find(',');
    Result<double> value = parse(text.substr(0, comma));
    if (!value) return tl::unexpected(value.error());
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<int> ParseCount(std::string_view text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (text.empty() || result.ec != std::errc() || result.ptr != end || value < least ||
      value > most) {
    return InvalidInput(
        fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text));
  }
  return value;
}

Result<double> ParseNumber(std::string_view text, const Range& range, std::string_view unit) {
  double value = 0;
  const bool is_number = ReadNumber(text, &value);
  const bool inside = range.excludes_ends ? value > range.least && value < range.most
                                          : value >= range.least && value <= range.most;
  if (!is_number || !inside) {
    const std::string space = unit.empty() ? "" : fmt::format(" of {}", unit);
    return InvalidInput(range.excludes_ends
                            ? fmt::format("expected a number{} between {} and {} (neither included)"
                                          ", got '{}'",
                                          space, range.least, range.most, text)
                            : fmt::format("expected a number{} from {} to {}, got '{}'", space,
                                          range.least, range.most, text));
  }
  return value;
}

Result<double> ParseDuration(std::string_view text) {
  std::string_view digits = text;
  double scale = 1;
  if (digits.ends_with("us")) {
    digits.remove_suffix(2);
    scale = 1e-6;
  } else if (digits.ends_with("ms")) {
    digits.remove_suffix(2);
    scale = 1e-3;
  } else if (digits.ends_with("s")) {
    digits.remove_suffix(1);
  }
  double value = 0;
  if (!ReadNumber(digits, &value) || value < 0 || value * scale > kMostSeconds) {
    return InvalidInput(fmt::format(
        "expected seconds (0.02), or a number with a unit (20ms, 500us), not negative and at most "
        "{}, got '{}'",
        kMostSeconds, text));
  }
  return value * scale;
}

Result<PlanTarget> ParseTarget(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name == "t_min" || name == "tmin") name = "fastest";
  if (name == "t_economic") name = "economic";
  if (name == "t*" || name == "t_star") name = "tstar";
  Result<PlanTarget> target = ParsePlanTarget(name);
  // The error quotes what was given.
  return target ? target : ParsePlanTarget(text);
}

Result<std::vector<double>> ParseWatts(std::string_view text) {
  return ParseList(text, [](std::string_view item) {
    return ParseNumber(item, {.least = 0, .most = kMostWatts}, "watts");
  });
}

Result<std::vector<double>> ParseDurations(std::string_view text) {
  return ParseList(text, ParseDuration);
}

}  // namespace perseus::cli
