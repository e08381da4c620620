// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/share_text.h"

#include <fmt/format.h>

#include <optional>

#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus::job {
namespace {

bool Inside(double share, const NumberRange& range) {
  const bool above = range.above_least ? share > range.least : share >= range.least;
  const bool below = range.below_most ? share < range.most : share <= range.most;
  return above && below;
}

}  // namespace

Result<double> ParseShare(std::string_view text, const NumberRange& range) {
  const bool is_percent = text.ends_with('%');
  std::string_view digits = text;
  if (is_percent) digits.remove_suffix(1);
  const std::optional<double> value = ParseFinite(digits);
  if (value) {
    const double share = is_percent ? *value / 100 : *value;
    if (Inside(share, range)) return share;
  }
  const bool meant_percent = value && !is_percent && *value > 0 && Inside(*value / 100, range);
  const std::string_view bound = range.below_most ? "below" : "of at most";
  return InvalidInput(fmt::format("expected a percentage (1%) or a share (0.01) {} {:g}%, got {}{}",
                                  range.above_least
                                      ? fmt::format("above {:g}% and {}", 100 * range.least, bound)
                                      : std::string(bound),
                                  100 * range.most, Shown(text),
                                  meant_percent ? fmt::format("; did you mean {}%?", text) : ""));
}

}  // namespace perseus::job
