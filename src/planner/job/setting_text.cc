// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/setting_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/job_fields.h"

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

Result<std::vector<ClockLatency>> ParseClockLatencies(std::string_view text) {
  std::vector<ClockLatency> latencies;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = Trimmed(rest.substr(0, comma));
    const std::size_t equals = part.find('=');
    const std::optional<double> clock = ParseFinite(Trimmed(part.substr(0, equals)));
    if (equals == std::string_view::npos || !clock) {
      return InvalidInput(fmt::format(
          "expected a time for each of some clocks, such as \"1410=9ms,600=30ms\", found {}",
          Shown(text)));
    }
    const Result<double> seconds = ParseDuration(Trimmed(part.substr(equals + 1)));
    if (!seconds) return tl::unexpected(seconds.error());
    latencies.push_back({*clock, *seconds});
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  // Whether there is a latency for other clocks is not to be seen here.
  const Result<void> checked = CheckClockLatencies({.latency_seconds = 1, .latency_at = latencies});
  if (!checked) return tl::unexpected(checked.error());
  return latencies;
}

std::string ClockLatenciesText(const std::vector<ClockLatency>& latencies) {
  std::string text;
  for (const ClockLatency& each : latencies) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", each.clock, each.seconds);
  }
  return text;
}

namespace {

constexpr std::string_view kDigits = "0123456789.";

// Of the dash between two numbers: not a sign, nor that of an exponent.
std::size_t FindDash(std::string_view text) {
  for (std::size_t at = text.find('-', 1); at != std::string_view::npos;
       at = text.find('-', at + 1)) {
    const char before = text[at - 1];
    if (before != 'e' && before != 'E') return at;
  }
  return std::string_view::npos;
}

}  // namespace

Result<ValueRange> ParseValueRange(std::string_view text,
                                   const std::function<Result<double>(std::string_view)>& parse) {
  const std::size_t dash = text.empty() ? std::string_view::npos : FindDash(text);
  if (dash == std::string_view::npos) {
    const Result<double> value = parse(text);
    if (!value) return tl::unexpected(value.error());
    return ValueRange(*value);
  }
  std::string first(Trimmed(text.substr(0, dash)));
  const std::string_view second = Trimmed(text.substr(dash + 1));
  const bool has_unit = first.empty() || kDigits.find(first.back()) == std::string_view::npos;
  const std::size_t last_digit = second.find_last_of(kDigits);
  if (!has_unit && last_digit != std::string_view::npos) first += second.substr(last_digit + 1);
  const Result<double> least = parse(first);
  if (!least) return tl::unexpected(least.error());
  const Result<double> most = parse(second);
  if (!most) return tl::unexpected(most.error());
  if (*least > *most) {
    return InvalidInput(
        fmt::format("expected a range with the smaller number first, got {}", Shown(text)));
  }
  return ValueRange(*least, *most);
}

namespace {

bool Inside(double share, const NumberRange& range) {
  const bool above = range.above_least ? share > range.least : share >= range.least;
  const bool below = range.below_most ? share < range.most : share <= range.most;
  return above && below;
}

// "of at most 25%", "above 0% and below 100%".
std::string Bounds(const NumberRange& range) {
  const std::string most =
      fmt::format("{} {:g}%", range.below_most ? "below" : "of at most", 100 * range.most);
  if (range.above_least) return fmt::format("above {:g}% and {}", 100 * range.least, most);
  return range.least > 0 ? fmt::format("from {:g}% to {}", 100 * range.least, most) : most;
}

// Both readings of a number that fits neither as a share nor as a percentage.
std::string BothReadings(double value, const NumberRange& range) {
  if (!(range.least > 0) || !(value > 0)) return "";
  return fmt::format("; that would be {:g}%, or {:g}% with the sign", 100 * value, value);
}

}  // namespace

Result<double> ParseShare(std::string_view text, const NumberRange& range) {
  std::string_view digits = text;
  const bool is_percent = TakeUnit(&digits, "%");
  const std::optional<double> value = ParseFinite(digits);
  if (value) {
    const double share = is_percent ? *value / 100 : *value;
    if (Inside(share, range)) return share;
  }
  const bool meant_percent = value && !is_percent && *value > 0 && Inside(*value / 100, range);
  return InvalidInput(fmt::format("expected a percentage (1%) or a share (0.01) {}, got {}{}",
                                  Bounds(range), Shown(text),
                                  meant_percent          ? fmt::format("; did you mean {}%?", text)
                                  : value && !is_percent ? BothReadings(*value, range)
                                                         : ""));
}

Result<double> CheckShare(double share, const NumberRange& range) {
  if (Inside(share, range)) return share;
  const bool meant_percent = share > 0 && Inside(share / 100, range);
  return InvalidInput(fmt::format(
      "expected a share (0.01) or a percentage (\"1%\") {}, found {}{}", Bounds(range), share,
      meant_percent ? fmt::format("; for {0:g} % write \"{0:g}%\" or {1:g}", share, share / 100)
                    : BothReadings(share, range)));
}

}  // namespace perseus::job
