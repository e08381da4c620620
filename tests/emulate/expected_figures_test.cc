// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "emulate/emulation_testing.h"
#include "perseus/emulator.h"

namespace perseus {
namespace {

using emulator_testing::Plans;
using emulator_testing::PlanWith;
using emulator_testing::TinyPipeline;

Conditions Noisy() {
  Conditions conditions;
  conditions.noise.per_computation = 0.01;
  return conditions;
}

TEST(EmulateUnderTest, MaximumClocksAreWhatPlansAreComparedWith) {
  const Planner planner = Plans(TinyPipeline(2, 2));
  const Plan slow = PlanWith(planner, {emulator_testing::kSlow});
  const auto figures =
      *EmulateUnder(planner, {&slow, &planner.baseline()}, {.conditions = Noisy(), .pipelines = 2});
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_NEAR(figures[0].slowdown_percent, 100, 2);
  EXPECT_NEAR(figures[0].iteration_time_seconds, 2 * figures[1].iteration_time_seconds, 0.4);
  EXPECT_EQ(figures[1].slowdown_percent, 0);
  EXPECT_EQ(figures[1].saving_percent, 0);
  // An equal plan that is not the planner's own is emulated, with the same outcome.
  const Plan copy = planner.baseline();
  EXPECT_EQ(*EmulateUnder(planner, {&slow, &copy}, {.conditions = Noisy(), .pipelines = 2}),
            figures);
}

TEST(EmulateUnderTest, KnowsTheWorstOfAllCorners) {
  const Planner planner = Plans(TinyPipeline(2, 2));
  const Plan slow = PlanWith(planner, {emulator_testing::kSlow});
  Conditions conditions = Noisy();
  const ExpectedFigures one = EmulateUnder(planner, {&slow}, {.conditions = conditions})->front();
  EXPECT_EQ(one.most_slowdown_percent, one.slowdown_percent);
  EXPECT_EQ(one.least_saving_percent, one.saving_percent);
  conditions.ranges.noise = ValueRange(0, 0.02);
  const ExpectedFigures wide = EmulateUnder(planner, {&slow}, {.conditions = conditions})->front();
  EXPECT_EQ(wide.slowdown_percent, one.slowdown_percent);
  double most = one.slowdown_percent;
  double least = one.saving_percent;
  for (const double noise : {0.0, 0.02}) {
    conditions.ranges = {};
    conditions.noise.per_computation = noise;
    const ExpectedFigures there =
        EmulateUnder(planner, {&slow}, {.conditions = conditions})->front();
    most = std::max(most, there.slowdown_percent);
    least = std::min(least, there.saving_percent);
  }
  EXPECT_EQ(wide.most_slowdown_percent, most);
  EXPECT_EQ(wide.least_saving_percent, least);
}

TEST(EmulateUnderTest, TellsItsShareAndEndsWhereItIsToldTo) {
  const Planner planner = Plans(TinyPipeline(2));
  const Plan slow = PlanWith(planner, {emulator_testing::kSlow});
  std::vector<double> shares;
  std::size_t most = 1000;
  const auto told = [&](const Progress& now) {
    shares.push_back(now.share);
    return shares.size() < most;
  };
  // Maximum clocks once, though they are asked for, too.
  ASSERT_TRUE(EmulateUnder(planner, {&planner.baseline(), &slow},
                           {.conditions = Noisy(), .progress = told}));
  EXPECT_THAT(shares, testing::Pointwise(testing::DoubleEq(),
                                         {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}));
  for (most = 1; most <= 10; ++most) {
    shares.clear();
    const auto ended = EmulateUnder(planner, {&slow}, {.conditions = Noisy(), .progress = told});
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(shares.size(), most);
  }
}

}  // namespace
}  // namespace perseus
