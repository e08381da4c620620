// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/rank_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace perseus::trace {

RankOrder::RankOrder(const Recording& recording, int cell)
    : recording_(recording), first_(recording.first_of[cell]) {
  const auto size = static_cast<std::size_t>(recording.first_of[cell + 1] - first_);
  const auto at = [&](int i) -> const Operation& { return recording_.operations[i]; };
  std::vector<int> by_start(size);
  std::iota(by_start.begin(), by_start.end(), first_);
  by_end_ = by_start;
  std::sort(by_start.begin(), by_start.end(), [&](int a, int b) {
    return std::pair(at(a).start_seconds, a) < std::pair(at(b).start_seconds, b);
  });
  std::sort(by_end_.begin(), by_end_.end(), [&](int a, int b) {
    return std::pair(at(a).end_seconds(), -a) < std::pair(at(b).end_seconds(), -b);
  });
  start_rank_.resize(size);
  for (std::size_t i = 0; i < size; ++i) start_rank_[by_start[i] - first_] = static_cast<int>(i);
  while (leaves_ < size) leaves_ *= 2;
  least_start_.assign(2 * leaves_, std::numeric_limits<int>::max());
  for (std::size_t i = 0; i < size; ++i) {
    least_start_[leaves_ + i] = start_rank_[by_end_[i] - first_];
  }
  for (std::size_t node = leaves_ - 1; node > 0; --node) {
    least_start_[node] = std::min(least_start_[2 * node], least_start_[2 * node + 1]);
  }
}

int RankOrder::Before(int operation) const {
  constexpr double kRoundingSeconds = 1e-4;  // Times of host and device, of one rank.
  const double latest_end = recording_.operations[operation].start_seconds + kRoundingSeconds;
  const int start_rank = start_rank_[operation - first_];
  const auto too_late = std::upper_bound(
      by_end_.begin(), by_end_.end(), latest_end,
      [&](double end, int i) { return end < recording_.operations[i].end_seconds(); });
  // The last leaf before `too_late` that began earlier: up to the first subtree on
  // the left that has one, then down it.
  std::size_t node = leaves_ + static_cast<std::size_t>(too_late - by_end_.begin());
  if (node == 2 * leaves_) {  // All ended by then: begin at the root.
    node = 1;
    if (least_start_[node] >= start_rank) return -1;
  } else {
    while (node > 1 && (node % 2 == 0 || least_start_[node - 1] >= start_rank)) node /= 2;
    if (node <= 1) return -1;
    --node;
  }
  while (node < leaves_) {
    node = 2 * node + (least_start_[2 * node + 1] < start_rank ? 1 : 0);
  }
  return by_end_[node - leaves_];
}

}  // namespace perseus::trace
