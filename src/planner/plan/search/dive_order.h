// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_DIVE_ORDER_H_
#define PERSEUS_PLAN_SEARCH_DIVE_ORDER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "frontier/deadline_program.h"
#include "plan/search/option_search.h"

namespace perseus::plan {

// How a dive goes.
struct DiveStyle {
  enum class Order : std::uint8_t { kByTime, kRankByRank, kLastRankFirst };
  Order order = Order::kByTime;
  bool backward = false;  // From the last activity to the first.
  int candidates = 6;     // Knobs tried besides the neighbours of the relaxation.
  bool look_ahead = true;
  int disorder = 0;  // Positions by which an activity may leave its place in the order.
};

// The style of the n-th dive: a few fixed ones, then random ones.
DiveStyle StyleOfDive(int dive, std::mt19937* random);

// Where the activities of a space lie on ranks and in time.
class ActivityOrder {
 public:
  // `program` is the relaxation with every activity free.
  ActivityOrder(const SearchSpace& space, const frontier::DeadlineProgram& program);

  // The activity that runs before `activity` on its rank, or -1.
  int Previous(int activity) const { return previous_[activity]; }
  const std::vector<int>& by_start() const { return by_start_; }
  std::vector<int> OfDive(const DiveStyle& style, std::mt19937* random) const;

 private:
  std::vector<int> previous_;  // [activity]
  std::vector<int> rank_;      // [activity]
  std::vector<int> by_start_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_SEARCH_DIVE_ORDER_H_
