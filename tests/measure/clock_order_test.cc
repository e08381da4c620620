// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/clock_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

namespace perseus::measure {
namespace {

std::vector<int> Clocks(int count) {
  std::vector<int> clocks;
  for (int i = 0; i < count; ++i) clocks.push_back(510 + 15 * i);
  return clocks;
}

// Energy least near 1000 MHz.
double Joules(int mhz) { return 20 + std::pow((mhz - 1000) / 100.0, 2); }

// The clocks in the order in which they are measured.
std::vector<int> Visit(ClockOrder order, const std::function<double(int)>& joules,
                       double jump = 0) {
  std::vector<int> visited;
  std::vector<Estimate> rows;
  while (order.clock_mhz() != 0 && visited.size() < 1000) {
    visited.push_back(order.clock_mhz());
    Estimate row;
    row.mhz = order.clock_mhz();
    row.seconds = 60.0 / row.mhz;
    row.joules = joules(row.mhz);
    row.samples = 10;
    rows.push_back(row);
    order.Next(rows, 0, jump);
  }
  return visited;
}

TEST(ClockOrder, GoesDownUntilEnergyHasRisenFiveTimesInARow) {
  const auto visited = Visit(ClockOrder(Clocks(61), {}), Joules);
  EXPECT_EQ(visited.front(), 1410);
  EXPECT_TRUE(std::is_sorted(visited.rbegin(), visited.rend()));
  // 1005 is least; 990 is 0.01 more.
  EXPECT_EQ(visited.back(), 1005 - 5 * 15);
}

TEST(ClockOrder, ARiseThatIsInterruptedBeginsAnew) {
  const auto visited = Visit(ClockOrder(Clocks(61), {}), [](int mhz) {
    return mhz == 1410 - 5 * 15 ? 10.0 : 50.0 - mhz * 1e-3;  // Rises but for one dip.
  });
  EXPECT_EQ(visited.size(), 1U + 5 + 5);
}

TEST(ClockOrder, StridesAndEndsAtTheLeastClock) {
  OrderSettings settings;
  settings.stride = 2;
  settings.least_mhz = 800;
  const auto visited =
      Visit(ClockOrder({700, 800, 900, 1000, 1100}, settings), [](int mhz) { return mhz; });
  EXPECT_EQ(visited, (std::vector<int>{1100, 900}));
}

TEST(ClockOrder, ARestartLeavesOutWhatIsReported) {
  ClockOrder order(Clocks(10), {});
  order.Leave({645, 630, 600, 123});
  EXPECT_EQ(Visit(order, [](int mhz) { return mhz; }),
            (std::vector<int>{615, 585, 570, 555, 540, 525, 510}));
  ClockOrder nothing({510}, {});
  nothing.Leave({510});
  EXPECT_EQ(nothing.clock_mhz(), 0);
}

TEST(ClockOrder, CoarseNeedsAThirdAndRefinesWhereTheCurveBends) {
  OrderSettings coarse;
  coarse.coarse = true;
  const auto all = Visit(ClockOrder(Clocks(61), {}), Joules);
  const auto few = Visit(ClockOrder(Clocks(61), coarse), Joules);
  EXPECT_LE(few.size() * 3, all.size() + 3);
  EXPECT_GE(few.size(), 10U);
  const std::set<int> distinct(few.begin(), few.end());
  EXPECT_EQ(distinct.size(), few.size());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(few[i], 1410 - 60 * static_cast<int>(i));
}

TEST(ClockOrder, CoarseMeasuresEveryClockOfACardThatJumps) {
  OrderSettings coarse;
  coarse.coarse = true;
  const auto falls = [](int mhz) { return mhz; };  // Towards low clocks: all are needed.
  const auto calm = Visit(ClockOrder(Clocks(61), coarse), falls, 0.9 * ClockOrder::kRoughJump);
  EXPECT_LT(calm.size(), 25U);
  const auto rough = Visit(ClockOrder(Clocks(61), coarse), falls, ClockOrder::kRoughJump);
  EXPECT_EQ(std::set<int>(rough.begin(), rough.end()).size(), 61U);
  EXPECT_EQ(rough.size(), 61U);
}

TEST(ClockOrder, AShuffledOrderIsItsSeedsAndMeasuresTheSame) {
  OrderSettings settings;
  settings.shuffle = true;
  settings.seed = 7;
  const auto rising = [](int mhz) { return mhz; };  // Falls towards low clocks: all are needed.
  const auto once = Visit(ClockOrder(Clocks(30), settings), rising);
  EXPECT_EQ(once, Visit(ClockOrder(Clocks(30), settings), rising));
  EXPECT_EQ(once.front(), 945);
  EXPECT_EQ(std::set<int>(once.begin(), once.end()).size(), 30U);
  EXPECT_FALSE(std::is_sorted(once.rbegin(), once.rend()));
  settings.seed = 8;
  EXPECT_NE(once, Visit(ClockOrder(Clocks(30), settings), rising));
}

// Whatever is measured, no clock is measured twice and the sweep ends.
RC_GTEST_PROP(ClockOrder, EndsAndNeverRepeats, (bool coarse, bool shuffle, std::uint64_t seed)) {
  OrderSettings settings;
  settings.coarse = coarse;
  settings.shuffle = shuffle;
  settings.seed = seed;
  const int count = *rc::gen::inRange(1, 70);
  std::vector<double> joules;
  for (int i = 0; i < count; ++i) joules.push_back(*rc::gen::inRange(1, 1000));
  const auto visited = Visit(ClockOrder(Clocks(count), settings), [&](int mhz) {
    return joules[static_cast<std::size_t>((mhz - 510) / 15)];
  });
  RC_ASSERT(visited.size() <= static_cast<std::size_t>(count));
  RC_ASSERT(std::set<int>(visited.begin(), visited.end()).size() == visited.size());
  RC_ASSERT(visited.front() == 510 + 15 * (count - 1));
}

}  // namespace
}  // namespace perseus::measure
