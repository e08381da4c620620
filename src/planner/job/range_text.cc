// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/range_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus::job {
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

}  // namespace perseus::job
