// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/share_text.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus::job {
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

// What a number stands for that fits neither as a share nor as a percentage.
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
