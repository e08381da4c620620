// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/limited_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
namespace {

using emulator_testing::kFast;
using emulator_testing::Plans;
using emulator_testing::PlanWith;
using emulator_testing::TinyPipeline;

// Three clocks of one forward: 1000, 750 and 500 MHz at 100, 60 and 40 W.
CostedPipeline ThreeClocks() {
  return plan_testing::Costed(
      "0,forward,1000,1,100\n0,forward,750,1.5,90\n0,forward,500,2,80\n"
      "0,backward,1000,1,150\n0,backward,500,2,150\n",
      plan_testing::DagOf("1f1b", 1, 1), plan_testing::Blocking(10));
}

int KnobLeft(const CostedPipeline& pipeline, int planned, const RankLimits& limits) {
  const CostTable& table = pipeline.TableOf(0);
  return LimitedOption(pipeline, table, table.all_options[planned], limits).knob;
}

TEST(LimitedOptionTest, ClockLimit) {
  const CostedPipeline pipeline = ThreeClocks();
  EXPECT_EQ(KnobLeft(pipeline, 0, {}), 0);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_mhz = 1000}), 0);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_mhz = 999}), 1);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_mhz = 600}), 2);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_mhz = 100}), 2);
  EXPECT_EQ(KnobLeft(pipeline, 2, {.most_mhz = 800}), 2);  // Planned slower anyway.
}

TEST(LimitedOptionTest, PowerLimit) {
  const CostedPipeline pipeline = ThreeClocks();
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_watts = 100}), 0);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_watts = 99}), 1);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_watts = 50}), 2);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_watts = 30}), 2);  // All draw more.
  EXPECT_EQ(KnobLeft(pipeline, 2, {.most_watts = 99}), 2);
  EXPECT_EQ(KnobLeft(pipeline, 0, {.most_mhz = 800, .most_watts = 99}), 1);
  CostedPipeline eight = pipeline;
  eight.tensor_parallel = 8;  // 12.5, 7.5 and 5 W each.
  EXPECT_EQ(KnobLeft(eight, 0, {.most_watts = 8}), 1);
}

TEST(LimitedOptionTest, PowerLimitNeverRaisesTheClock) {
  // The lower clock draws more than the higher one.
  const CostedPipeline pipeline =
      plan_testing::Costed("0,forward,1000,1,50\n0,forward,500,2,200\n0,backward,1000,1,1\n",
                           plan_testing::DagOf("1f1b", 1, 1), plan_testing::Blocking(10));
  EXPECT_EQ(KnobLeft(pipeline, 1, {.most_watts = 60}), 1);
}

TEST(OptionsByKnobTest, NearestClockCounts) {
  const CostedPipeline pipeline = ThreeClocks();
  model::FixedNoise noise;
  noise.stage = {1.5};
  const OptionsByKnob options(pipeline, noise);
  const int backward = 1;
  // 750 MHz is as near to 1000 as to 500: the lower one.
  ASSERT_NE(options.Find(backward, 1), nullptr);
  EXPECT_EQ(options.Find(backward, 1), options.Find(backward, 2));
  EXPECT_EQ(options.Find(backward, 1)->time_seconds, 3);
  EXPECT_EQ(options.Find(backward, 1)->energy_joules, 225);
  EXPECT_EQ(options.Find(backward, 1)->watts, 75);
  EXPECT_EQ(options.Find(backward, 0)->time_seconds, 1.5);
}

TEST(OptionsByKnobTest, LabelsHaveNoNearest) {
  const CostedPipeline pipeline =
      plan_testing::Costed("0,forward,high,1,100\n0,forward,low,2,80\n0,backward,high,1,150\n",
                           plan_testing::DagOf("1f1b", 1, 1), plan_testing::Blocking(10));
  model::FixedNoise noise;
  noise.stage = {1};
  const OptionsByKnob options(pipeline, noise);
  EXPECT_EQ(options.Find(1, 1), nullptr);
  EXPECT_NE(options.Find(0, 1), nullptr);
}

TEST(LimitedPlansTest, FiguresOfALimitedPlan) {
  const Planner planner = Plans(TinyPipeline(2));
  const CostedPipeline& pipeline = planner.pipeline();
  model::FixedNoise noise;
  noise.stage = {1, 1};
  const OptionsByKnob options(pipeline, noise);
  LimitedPlans plans(pipeline, options, {});
  const Plan plan = PlanWith(planner, {kFast});
  const LimitedPlan& healthy = plans.Get(0, plan, {});
  EXPECT_FALSE(healthy.straggles);
  EXPECT_EQ(healthy.time_seconds, 6);
  EXPECT_EQ(healthy.nominal_seconds, 6);
  EXPECT_EQ(healthy.computing_joules, 800);
  EXPECT_EQ(healthy.busy_joules, 60);
  // Rank 0 three times as slow after 1.5 s: F0 1.5-4.5, F1 -5.5, B1 -7.5, B0 -13.5.
  const std::vector<RankLimits> limits = {{.slow = 3, .stall_seconds = 1.5}, {}};
  const LimitedPlan& limited = plans.Get(0, plan, limits);
  EXPECT_TRUE(limited.straggles);
  EXPECT_EQ(limited.time_seconds, 6);
  EXPECT_EQ(limited.nominal_seconds, 13.5);
  EXPECT_NE(limited.serial, healthy.serial);
  EXPECT_EQ(&plans.Get(0, plan, limits), &limited);
  EXPECT_EQ(plans.size(), 2);
}

}  // namespace
}  // namespace perseus::emulate
