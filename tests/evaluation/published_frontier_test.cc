// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/published_frontier.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace perseus::sosp24 {
namespace {

TEST(PublishedFrontierTest, StopsWhereEnergyIsLeastOrGoesOn) {
  const PublishedFrontier frontier({{3, 90}, {1, 120}, {2, 100}, {4, 91}}, 5);
  EXPECT_EQ(frontier.fastest_seconds(), 1);
  EXPECT_EQ(frontier.LeastTotal(10).iteration_time_seconds, 3);
  EXPECT_EQ(frontier.LeastEffective(10).iteration_time_seconds, 4);  // 91 + 30 < 90 + 35
  EXPECT_EQ(frontier.LeastTotal(2.5).iteration_time_seconds, 2);
  EXPECT_EQ(frontier.LeastTotal(2).iteration_time_seconds, 2);  // In time to the last bit.
  EXPECT_EQ(frontier.LeastTotal(1).iteration_time_seconds, 1);
  EXPECT_TRUE(frontier.RulesAreBest(10));
}

// Against every point, with costs written down anew; coordinates are whole, so
// that sums are exact.
RC_GTEST_PROP(PublishedFrontierTest, TakesTheBestOfAllPoints, ()) {
  const auto raw = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 40), rc::gen::inRange(0, 400))));
  const int watts = *rc::gen::inRange(0, 20);
  std::vector<Sosp24Point> points;
  for (const auto& [time, energy] : raw) {
    points.push_back({static_cast<double>(time), static_cast<double>(energy)});
  }
  const PublishedFrontier frontier(points, watts);
  const int until = static_cast<int>(frontier.fastest_seconds()) + *rc::gen::inRange(0, 40);
  int total = std::numeric_limits<int>::max();
  int effective = std::numeric_limits<int>::max();
  for (const auto& [time, energy] : raw) {
    if (time > until) continue;
    total = std::min(total, energy);
    effective = std::min(effective, energy + watts * (until - time));
  }
  const Sosp24Point& by_total = frontier.LeastTotal(until);
  const Sosp24Point& by_effective = frontier.LeastEffective(until);
  RC_ASSERT(by_total.iteration_time_seconds <= until);
  RC_ASSERT(by_effective.iteration_time_seconds <= until);
  RC_ASSERT(by_total.energy_joules == total);
  RC_ASSERT(by_effective.energy_joules + watts * (until - by_effective.iteration_time_seconds) ==
            effective);
  RC_ASSERT(frontier.RulesAreBest(until));
}

}  // namespace
}  // namespace perseus::sosp24
