// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/schedule_names.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "perseus/schedule.h"

namespace perseus {
namespace {

// Other spellings, folded: PyTorch's class names without "Schedule", and what
// papers say.
struct Alias {
  std::string_view folded;
  std::string_view canonical;
};
constexpr std::array kAliases = {
    Alias{"interleaved", "interleaved-1f1b"},
    Alias{"megatron", "megatron-interleaved"},
    Alias{"megatroninterleaved1f1b", "megatron-interleaved"},
    Alias{"zb1p", "interleaved-zero-bubble"},
    Alias{"zbv", "zbv-zero-bubble"},
};

std::string Fold(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

// Levenshtein's.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

const std::vector<std::string>& ScheduleNames() {
  static const std::vector<std::string> kNames = {"gpipe",
                                                  "1f1b",
                                                  "looped-bfs",
                                                  "interleaved-1f1b",
                                                  "megatron-interleaved",
                                                  "interleaved-zero-bubble",
                                                  "zbv-zero-bubble",
                                                  "dualpipev"};
  return kNames;
}

std::optional<std::string> CanonicalScheduleName(std::string_view name) {
  const std::string folded = Fold(name);
  for (const std::string& canonical : ScheduleNames()) {
    if (folded == Fold(canonical)) return canonical;
  }
  for (const Alias& alias : kAliases) {
    if (folded == alias.folded) return std::string(alias.canonical);
  }
  return std::nullopt;
}

namespace pipeline {

std::string UnknownScheduleName(std::string_view name) {
  constexpr std::size_t kLongestName = 64;
  const std::string folded = Fold(name.substr(0, kLongestName));
  std::string_view nearest;
  std::size_t least = kLongestName;
  const auto offer = [&](std::string_view spelling, std::string_view canonical) {
    const std::size_t distance = EditDistance(folded, spelling);
    if (distance < least) {
      least = distance;
      nearest = canonical;
    }
  };
  for (const std::string& canonical : ScheduleNames()) offer(Fold(canonical), canonical);
  for (const Alias& alias : kAliases) offer(alias.folded, alias.canonical);
  return fmt::format("unknown schedule '{}': did you mean {}? Known are {}",
                     name.substr(0, kLongestName), nearest, fmt::join(ScheduleNames(), ", "));
}

}  // namespace pipeline
}  // namespace perseus
