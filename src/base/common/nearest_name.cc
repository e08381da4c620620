// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "common/printable.h"

namespace perseus {
namespace {

constexpr std::size_t kLongestShown = 40;

// Levenshtein's.
std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string FoldedName(std::string_view name) {
  std::string folded;
  for (const char c : name.substr(0, 4 * kLongestShown)) {
    if (c == '-' || c == '_' || c == ' ') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

bool SameName(std::string_view a, std::string_view b) { return FoldedName(a) == FoldedName(b); }

std::string NearestName(std::string_view given, const std::vector<std::string>& names) {
  const std::string folded = FoldedName(given);
  // A name of which more than half of the letters must change is another word.
  std::size_t best_distance =
      std::min(std::max<std::size_t>(2, folded.size() / 3), folded.size() / 2) + 1;
  std::string best;
  for (const std::string& name : names) {
    const std::size_t distance = EditDistance(folded, FoldedName(name));
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string NearestHint(std::string_view given, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(given, names);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

std::string Shown(std::string_view text) {
  std::string shown = "'";
  std::size_t i = 0;
  while (i < text.size() && i < kLongestShown) i += AppendPrintable(text.substr(i), &shown);
  return shown + (i < text.size() ? "...'" : "'");
}

}  // namespace perseus
