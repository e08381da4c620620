// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "measure/sweep.h"

namespace perseus::measure {
namespace {

std::vector<int> Clocks(int count) {
  std::vector<int> clocks;
  for (int i = 0; i < count; ++i) clocks.push_back(510 + 15 * i);
  return clocks;
}

// Energy least near 1000 MHz.
double Joules(int mhz) { return 20 + std::pow((mhz - 1000) / 100.0, 2); }

// A card: what one kind draws, and how well that is known.
struct Card {
  std::function<double(int)> joules;
  double joules_std = 0;
  BlockingPower waiting = {};
  double jump = 0;
};

// The clocks in the order in which they are measured.
std::vector<int> Walk(ClockOrder order, const Card& card) {
  std::vector<int> visited;
  std::vector<Estimate> rows;
  while (order.clock_mhz() != 0 && visited.size() < 1000) {
    visited.push_back(order.clock_mhz());
    Estimate row;
    row.mhz = order.clock_mhz();
    row.seconds = 60.0 / row.mhz;
    row.joules = card.joules(row.mhz);
    row.joules_std = card.joules_std;
    row.samples = 10;
    rows.push_back(row);
    order.Next(rows, card.waiting, card.jump);
  }
  return visited;
}

std::set<int> Visited(const Card& card, bool coarse = false) {
  OrderSettings settings;
  settings.coarse = coarse;
  const auto visited = Walk(ClockOrder(Clocks(61), settings), card);
  return {visited.begin(), visited.end()};
}

TEST(ClockOrder, GoesDownInStepsThenFillsInUpDownAndUp) {
  const auto visited = Walk(ClockOrder(Clocks(9), {}), {.joules = [](int mhz) { return mhz; }});
  EXPECT_EQ(visited, (std::vector<int>{630, 570, 510, 540, 600, 615, 555, 525, 585}));
}

TEST(ClockOrder, StopsWhereEnergyHasRisenAndShowsThatItStaysSo) {
  const std::set<int> visited = Visited({.joules = Joules});
  // 930 is the first of the steps that is 2 % above the least, 810 the third; then a look half way
  // down to 0.4 of the highest.
  EXPECT_EQ(*visited.begin(), 750);
  EXPECT_TRUE(visited.contains(810));
  EXPECT_FALSE(visited.contains(795));
  // All that may be least is filled in.
  for (int mhz = 945; mhz <= 1410; mhz += 15) EXPECT_TRUE(visited.contains(mhz)) << mhz;
  EXPECT_FALSE(visited.contains(915));
}

TEST(ClockOrder, WhatIsNotSureIsNoRise) {
  EXPECT_EQ(Visited({.joules = Joules, .joules_std = 10}).size(), 61U);
  EXPECT_LT(Visited({.joules = Joules, .joules_std = 0.05}).size(), 45U);
}

// Energies of a card at its power cap, as of GPT-3 on A40: 33.6 to 34 J, up and down.
TEST(ClockOrder, APlateauIsNoRise) {
  const auto joules = [](int mhz) {
    const double plateau = 33.8 + 0.2 * std::sin(mhz);
    return mhz > 1100 ? plateau : plateau - 0.01 * (1100 - mhz);
  };
  EXPECT_EQ(Visited({.joules = joules, .joules_std = 0.05}).size(), 61U);
  EXPECT_EQ(*Visited({.joules = joules, .joules_std = 0.05}, true).begin(), 510);
}

TEST(ClockOrder, ABumpIsNoRise) {
  const auto joules = [](int mhz) {
    return mhz * 0.02 + 6 * std::exp(-std::pow((mhz - 1250) / 60.0, 2));
  };
  EXPECT_EQ(Visited({.joules = joules, .joules_std = 0.05}).size(), 61U);
  EXPECT_EQ(*Visited({.joules = joules, .joules_std = 0.05}, true).begin(), 510);
}

// Within a step power is the same, so lower clocks cost more, until the next step.
TEST(ClockOrder, StepsAreNoRise) {
  const auto joules = [](int mhz) { return std::pow(std::ceil(mhz / 120.0), 2) * 100.0 / mhz; };
  const Card card = {.joules = joules, .joules_std = 0.02};
  for (const bool coarse : {false, true}) EXPECT_LE(*Visited(card, coarse).begin(), 720);
}

// Joules are least near 1000 MHz. What is drawn in place of waiting is less and less.
TEST(ClockOrder, EffectiveEnergyDecidesNotJoules) {
  const Card card = {.joules = Joules, .waiting = {.watts = 1000, .watts_std = 1}};
  const std::set<int> visited = Visited(card);
  EXPECT_TRUE(visited.contains(1410 - 14 * 60));  // The last above 0.4 of the highest.
  EXPECT_FALSE(visited.contains(510));
  EXPECT_FALSE(visited.contains(885));  // Not filled in: joules have risen.
  EXPECT_TRUE(visited.contains(945));
}

TEST(ClockOrder, WaitingThatIsNotKnownIsAssumed) {
  ClockOrder order(Clocks(61), {});
  std::vector<Estimate> rows;
  int lowest = 1410;
  while (order.clock_mhz() != 0) {
    Estimate row;
    row.mhz = order.clock_mhz();
    lowest = std::min(lowest, row.mhz);
    row.seconds = 60.0 / row.mhz;
    row.joules = 20 + (1410 - row.mhz) * 0.002;  // Rises from the first on, but by little.
    row.samples = 10;
    rows.push_back(row);
    order.Next(rows, std::nullopt, 0);
  }
  EXPECT_EQ(lowest, 570);
}

TEST(ClockOrder, StridesAndEndsAtTheLeastClock) {
  OrderSettings settings;
  settings.stride = 2;
  settings.least_mhz = 800;
  const auto visited = Walk(ClockOrder({700, 800, 900, 1000, 1100}, settings),
                            {.joules = [](int mhz) { return mhz; }});
  EXPECT_EQ(visited, (std::vector<int>{1100, 900}));
}

TEST(ClockOrder, ARestartLeavesOutWhatIsReported) {
  ClockOrder order(Clocks(10), {});
  order.Leave({645, 630, 600, 123});
  EXPECT_EQ(Walk(order, {.joules = [](int mhz) { return mhz; }}),
            (std::vector<int>{585, 525, 555, 615, 570, 510, 540}));
  ClockOrder nothing({510}, {});
  nothing.Leave({510});
  EXPECT_EQ(nothing.clock_mhz(), 0);
}

TEST(ClockOrder, CoarseNeedsLessThanHalfAndRefinesWhereTheCurveBends) {
  OrderSettings coarse;
  coarse.coarse = true;
  const auto all = Walk(ClockOrder(Clocks(61), {}), {.joules = Joules});
  const auto few = Walk(ClockOrder(Clocks(61), coarse), {.joules = Joules});
  EXPECT_LT(few.size() * 2, all.size());
  EXPECT_GE(few.size(), 10U);
  const std::set<int> distinct(few.begin(), few.end());
  EXPECT_EQ(distinct.size(), few.size());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(few[i], 1410 - 60 * static_cast<int>(i));
}

TEST(ClockOrder, CoarseMeasuresEveryClockOfACardThatJumps) {
  OrderSettings coarse;
  coarse.coarse = true;
  const auto falls = [](int mhz) { return mhz; };  // Towards low clocks: all are needed.
  const auto calm =
      Walk(ClockOrder(Clocks(61), coarse), {.joules = falls, .jump = 0.9 * ClockOrder::kRoughJump});
  EXPECT_LT(calm.size(), 25U);
  const auto rough =
      Walk(ClockOrder(Clocks(61), coarse), {.joules = falls, .jump = ClockOrder::kRoughJump});
  EXPECT_EQ(std::set<int>(rough.begin(), rough.end()).size(), 61U);
  EXPECT_EQ(rough.size(), 61U);
}

TEST(ClockOrder, AShuffledOrderIsItsSeedsAndMeasuresTheSame) {
  OrderSettings settings;
  settings.shuffle = true;
  settings.seed = 7;
  const Card rising = {.joules = [](int mhz) { return mhz; }};  // All clocks are needed.
  const auto once = Walk(ClockOrder(Clocks(30), settings), rising);
  EXPECT_EQ(once, Walk(ClockOrder(Clocks(30), settings), rising));
  EXPECT_EQ(once.front(), 945);
  EXPECT_EQ(std::set<int>(once.begin(), once.end()).size(), 30U);
  EXPECT_FALSE(std::is_sorted(once.rbegin(), once.rend()));
  settings.seed = 8;
  EXPECT_NE(once, Walk(ClockOrder(Clocks(30), settings), rising));
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
  const auto visited =
      Walk(ClockOrder(Clocks(count), settings),
           {.joules = [&](int mhz) { return joules[static_cast<std::size_t>((mhz - 510) / 15)]; }});
  RC_ASSERT(visited.size() <= static_cast<std::size_t>(count));
  RC_ASSERT(std::set<int>(visited.begin(), visited.end()).size() == visited.size());
  RC_ASSERT(visited.front() == 510 + 15 * (count - 1));
}

// Wherever a bump of whatever height is, and wherever energy is least, no more than 3 % of it is
// left.
RC_GTEST_PROP(ClockOrder, ABumpHidesNoSaving, (bool coarse)) {
  const int bump = *rc::gen::inRange(1000, 1400);
  const int least = *rc::gen::inRange(600, 900);
  const double height = *rc::gen::inRange(0, 100) * 0.1;
  const auto joules = [&](int mhz) {
    return 20 + std::pow((mhz - least) / 250.0, 2) +
           height * std::exp(-std::pow((mhz - bump) / 50.0, 2));
  };
  double found = 1e9;
  for (const int mhz : Visited({.joules = joules, .joules_std = 0.02}, coarse)) {
    found = std::min(found, joules(mhz));
  }
  double best = 1e9;
  for (const int mhz : Clocks(61)) best = std::min(best, joules(mhz));
  RC_ASSERT(found <= 1.03 * best);
}

}  // namespace
}  // namespace perseus::measure
