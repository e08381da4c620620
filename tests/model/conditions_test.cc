// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/conditions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace perseus {
namespace {

TEST(CornersOfTest, AreTheValuesAloneWithoutRanges) {
  Conditions conditions;
  conditions.noise.per_computation = 0.01;
  EXPECT_EQ(CornersOf(conditions), (std::vector<Conditions>{conditions}));
}

TEST(CornersOfTest, HaveTheLeastAndTheMostOfEachRange) {
  Conditions conditions;
  conditions.noise.per_computation = 0.01;
  conditions.switching.latency_seconds = 0.02;
  conditions.switching.latency_spread_seconds = 0.015;
  conditions.switching.latency_at = {{1410, 0.04}, {600, 0.01}};
  conditions.ranges.noise = ValueRange(0, 0.02);
  conditions.ranges.switch_latency_seconds = ValueRange(0.01, 0.03);
  const std::vector<Conditions> corners = CornersOf(conditions);
  ASSERT_EQ(corners.size(), 5U);
  for (const Conditions& corner : corners) EXPECT_FALSE(corner.ranges.any());
  EXPECT_EQ(corners[0].noise.per_computation, 0.01);
  EXPECT_EQ(corners[0].switching, conditions.switching);
  for (const double noise : {0.0, 0.02}) {
    for (const double latency : {0.01, 0.03}) {
      EXPECT_EQ(std::count_if(corners.begin() + 1, corners.end(),
                              [&](const Conditions& corner) {
                                return corner.noise.per_computation == noise &&
                                       corner.switching.latency_seconds == latency &&
                                       corner.switching.latency_spread_seconds ==
                                           (latency == 0.01 ? 0 : 0.015) &&
                                       corner.switching.latency_at ==
                                           std::vector<ClockLatency>{
                                               {1410, 0.04 + (latency - 0.02)},
                                               {600, latency == 0.01 ? 0 : 0.01 + (0.03 - 0.02)}};
                              }),
                1);
    }
  }
}

TEST(CornersOfTest, ARangeOfOneValueDividesNothing) {
  Conditions conditions;
  conditions.ranges.rank_noise = ValueRange(0);
  EXPECT_EQ(CornersOf(conditions).size(), 2U);
}

TEST(CheckClockLatenciesTest, SaysWhatIsWrong) {
  ClockSwitching switching = {.latency_seconds = 0.02, .latency_at = {{1410, 0.01}, {600, 0}}};
  EXPECT_TRUE(CheckClockLatencies(switching));
  const auto error = [](const ClockSwitching& wrong) {
    const Result<void> checked = CheckClockLatencies(wrong);
    return checked ? "accepted" : checked.error().message;
  };
  switching.latency_at = {{1410, 0.01}, {1410, 0.02}};
  EXPECT_EQ(error(switching), "the clock 1410 has two latencies of its own; keep one");
  switching.latency_at = {{0, 0.01}};
  EXPECT_EQ(error(switching),
            "the clock 0 has a latency of its own; expected a clock above 0 (MHz)");
  switching.latency_at = {{1410, -1}};
  EXPECT_EQ(error(switching), "the latency of the clock 1410 is -1 s; expected 0 to 1000000 s");
  switching = {.latency_at = {{1410, 0.01}}};
  EXPECT_EQ(error(switching),
            "'switch_latency_at' is for clocks that take another time than others; give "
            "'switch_latency', too");
}

}  // namespace
}  // namespace perseus
