// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// When measured conditions ask for other plans: seldom.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "server/conditions_testing.h"
#include "server/detect/conditions_watch.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"

namespace perseus::server {
namespace {

// As Measured() measures it with a noise of 1 %.
const PlannedConditions kMeasuredPlan = {.values = {0.01, 0, 0, 0.02, 0.001},
                                         .measured = {true, true, true, true, true}};

// A job's reports, one after the other, and how often plans are made anew for them.
int PlansFor(const std::vector<double>& noise, PlannedConditions* plan) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  int plans = 0;
  for (const double truth : noise) {
    ConditionsWatch watch;
    for (int rank = 0; rank < 4; ++rank) {
      RankConditions told = Measured(truth, 0.02);
      told.noise_variance->value += told.noise_variance->error * normal(random);
      watch.Take(rank, told);
    }
    const MeasuredConditions measured = watch.Combined();
    if (!HaveMoved(*plan, measured, kLongSincePlans)) continue;
    ++plans;
    *plan = PlannedFor(*plan, measured);
    EXPECT_FALSE(HaveMoved(*plan, measured, kLongSincePlans));
  }
  return plans;
}

TEST(Hysteresis, WhatStaysAsItIsAsksForNoOtherPlan) {
  for (const double noise : {0.0005, 0.002, 0.01, 0.05}) {
    PlannedConditions plan;
    EXPECT_LE(PlansFor({noise, noise}, &plan), 1) << noise;
    EXPECT_EQ(PlansFor(std::vector<double>(5000, noise), &plan), 0) << noise;
  }
}

TEST(Hysteresis, AStepAsksForOne) {
  PlannedConditions plan = kMeasuredPlan;
  std::vector<double> noise(200, 0.01);
  noise.insert(noise.end(), 1000, 0.02);
  EXPECT_EQ(PlansFor(noise, &plan), 1);
  EXPECT_NEAR(plan.Of(Condition::kNoise), 0.02, 0.002);
  EXPECT_TRUE(plan.IsMeasured(Condition::kNoise));
}

// Each plan is for another value by a third at least, however the truth wanders.
TEST(Hysteresis, ARandomWalkAsksForFew) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int walk = 0; walk < 20; ++walk) {
    std::vector<double> noise = {0.01};
    double steps = 0;
    for (int i = 0; i < 2000; ++i) {
      const double step = 0.01 * normal(random);
      steps += std::abs(step);
      noise.push_back(noise.back() * std::exp(step));
    }
    PlannedConditions plan = kMeasuredPlan;
    const int plans = PlansFor(noise, &plan);
    // To leave the band takes a third of the way at once, or wandering that is as long.
    EXPECT_LE(plans, static_cast<int>(steps / (2 * std::log(4.0 / 3)))) << walk;
    EXPECT_LE(plans, 12) << walk;
  }
}

TEST(Hysteresis, WhatIsNotSureIsNotPlannedFor) {
  const PlannedConditions plan = kMeasuredPlan;
  ConditionsWatch watch;
  RankConditions told = Measured(0.05, 0.1);
  told.noise_variance->error = 1;
  told.latency_seconds->error = 0.2;
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), kLongSincePlans));
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kNoise), 0.01);
  // What cannot be told from none is planned for as none.
  told = Measured(0.05, 0.1);
  told.rank_noise_variance = RankFigure{1e-5, 1e-5};
  watch.Take(0, told);
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kRankNoise), 0);
  told.rank_noise_variance = RankFigure{1e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kRankNoise), 0.01);
}

// Each says nothing without the other: no plan comes for one of them alone.
TEST(Hysteresis, RareNoiseIsPlannedForOnceBothOfItsFiguresAreSure) {
  const auto measured = [](double share_error, double length_error) {
    MeasuredConditions all;
    const auto put = [&](Condition which, double value, double error) {
      all.figures[static_cast<std::size_t>(which)] = {value, error, 4};
    };
    put(Condition::kNoise, 0.01, 0.0001);
    put(Condition::kRareNoise, 0.1, length_error);
    put(Condition::kRareNoiseShare, 0.015, share_error);
    return all;
  };
  constexpr double kUnsure = 0.2;
  EXPECT_TRUE(HaveMoved(kMeasuredPlan, measured(0.0005, 0.005), kLongSincePlans));
  EXPECT_FALSE(HaveMoved(kMeasuredPlan, measured(0.0005, kUnsure), kLongSincePlans));
  EXPECT_FALSE(HaveMoved(kMeasuredPlan, measured(kUnsure, 0.005), kLongSincePlans));
  // Where there surely is none any more, nobody can say how long it is.
  PlannedConditions plan = PlannedFor(kMeasuredPlan, measured(0.0005, 0.005));
  MeasuredConditions none = measured(0.0005, kUnsure);
  none.figures[static_cast<std::size_t>(Condition::kRareNoiseShare)].value = 0.0002;
  EXPECT_TRUE(HaveMoved(plan, none, kLongSincePlans));
  plan = PlannedFor(plan, none);
  EXPECT_EQ(plan.Of(Condition::kRareNoiseShare), 0);
  EXPECT_FALSE(HaveMoved(plan, none, kLongSincePlans));
}

// The first plans for measured conditions may come while some figures are not sure.
TEST(Hysteresis, WhatBecomesSureIsPlannedForAtOnceAndOnlyOnce) {
  PlannedConditions plan;
  ConditionsWatch watch;
  RankConditions told = Measured(0.03, 0.05);
  told.rank_noise_variance = RankFigure{4e-4, 4e-4};
  watch.Take(0, told);
  ASSERT_TRUE(HaveMoved(plan, watch.Combined(), 1));
  plan = PlannedFor(plan, watch.Combined());
  EXPECT_TRUE(plan.IsMeasured(Condition::kLatency));
  EXPECT_FALSE(plan.IsMeasured(Condition::kRankNoise));
  EXPECT_EQ(plan.Of(Condition::kRankNoise), 0);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), 1));
  told.rank_noise_variance = RankFigure{4e-4, 1e-5};
  watch.Take(0, told);
  ASSERT_TRUE(HaveMoved(plan, watch.Combined(), 1));
  plan = PlannedFor(plan, watch.Combined());
  EXPECT_NEAR(plan.Of(Condition::kRankNoise), 0.02, 1e-9);
  told.rank_noise_variance = RankFigure{16e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), 1));
  EXPECT_TRUE(HaveMoved(plan, watch.Combined(), kLongSincePlans));
}

}  // namespace
}  // namespace perseus::server
