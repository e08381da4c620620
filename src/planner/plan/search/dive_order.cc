// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/search/dive_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace perseus::plan {

DiveStyle StyleOfDive(int dive, std::mt19937* random) {
  switch (dive) {
    case 0:
      return {.candidates = 3};
    case 1:
      return {.order = DiveStyle::Order::kRankByRank, .candidates = 2};
    case 2:
      return {.order = DiveStyle::Order::kLastRankFirst, .candidates = 2};
    case 3:
      return {.backward = true, .candidates = 2};
    case 4:
      return {.candidates = 0};
    default:
      return {.order = static_cast<DiveStyle::Order>((*random)() % 3),
              .backward = (*random)() % 2 == 0,
              .candidates = static_cast<int>((*random)() % 7),
              .look_ahead = (*random)() % 4 != 0,
              .disorder = static_cast<int>((*random)() % 5)};
  }
}

ActivityOrder::ActivityOrder(const SearchSpace& space, const frontier::DeadlineProgram& program)
    : previous_(space.knobs.size(), -1),
      rank_(space.knobs.size(), -1),
      by_start_(space.knobs.size()) {
  std::vector<std::int64_t> start(space.knobs.size());
  for (std::size_t g = 0; g < space.knobs.size(); ++g) {
    start[g] = program.StartTime(static_cast<int>(g));
    if (space.next[g] >= 0) previous_[space.next[g]] = static_cast<int>(g);
  }
  // Activities that follow one another run on one rank.
  int ranks = 0;
  for (std::size_t g = 0; g < space.knobs.size(); ++g) {
    if (previous_[g] >= 0) continue;
    for (int h = static_cast<int>(g); h >= 0 && rank_[h] < 0; h = space.next[h]) {
      rank_[h] = ranks;
    }
    ++ranks;
  }
  std::iota(by_start_.begin(), by_start_.end(), 0);
  std::stable_sort(by_start_.begin(), by_start_.end(),
                   [&](int a, int b) { return start[a] < start[b]; });
}

std::vector<int> ActivityOrder::OfDive(const DiveStyle& style, std::mt19937* random) const {
  std::vector<int> order = by_start_;
  if (style.order != DiveStyle::Order::kByTime) {
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return style.order == DiveStyle::Order::kRankByRank ? rank_[a] < rank_[b]
                                                          : rank_[a] > rank_[b];
    });
  }
  if (style.backward) std::reverse(order.begin(), order.end());
  if (style.disorder == 0) return order;
  std::vector<std::pair<std::uint32_t, int>> places;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto shift = (*random)() % static_cast<std::uint32_t>(2 * style.disorder + 1);
    places.emplace_back(static_cast<std::uint32_t>(2 * k) + shift, order[k]);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = places[k].second;
  return order;
}

}  // namespace perseus::plan
