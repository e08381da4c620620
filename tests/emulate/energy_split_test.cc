// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/energy_split.h"

#include <gtest/gtest.h>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
namespace {

using emulator_testing::Plans;
using emulator_testing::TinyPipeline;

// Two stages and one microbatch: all four computations follow one another, in
// 6 s at the highest clock (effective energy 740 J) and 12 s at the lowest
// (400 J).
LimitedPlan FastPlan() {
  LimitedPlan plan;
  plan.time_seconds = 6;
  plan.computing_joules = 800;
  plan.busy_joules = 60;
  return plan;
}

RunTotals RunOf(double seconds, double joules, double busy_joules) {
  RunTotals run;
  run.time_seconds = seconds;
  run.computing_joules = joules;
  run.busy_joules = busy_joules;
  return run;
}

TEST(EnergySplitTest, BestPlanHasNoBloat) {
  const Planner planner = Plans(TinyPipeline(2));
  const EnergySplit split = EnergySplitter(planner).Split(FastPlan(), RunOf(6, 800, 60), 6);
  EXPECT_NEAR(split.useful_joules, 800, 1e-9);
  EXPECT_NEAR(split.intrinsic_bloat_joules, 0, 1e-9);
  EXPECT_NEAR(split.extrinsic_bloat_joules, 0, 1e-9);
  EXPECT_NEAR(split.blocking_joules, 60, 1e-9);
}

TEST(EnergySplitTest, ExtrinsicBloatIsWhatTheStragglersTimeWouldSave) {
  const Planner planner = Plans(TinyPipeline(2));
  const EnergySplit split = EnergySplitter(planner).Split(FastPlan(), RunOf(6, 800, 60), 20);
  EXPECT_NEAR(split.extrinsic_bloat_joules, 740 - 400, 1e-9);
  EXPECT_NEAR(split.useful_joules, 460, 1e-9);
  EXPECT_NEAR(split.blocking_joules, 20 * 20 - 60, 1e-9);
}

TEST(EnergySplitTest, IntrinsicBloatIsWhatTheBestPlanOfThisTimeWouldSave) {
  const Planner planner = Plans(TinyPipeline(2));
  LimitedPlan wasteful = FastPlan();  // 12 s, and yet as dear as the fast one.
  wasteful.time_seconds = 12;
  const EnergySplit split = EnergySplitter(planner).Split(wasteful, RunOf(12, 800, 60), 12);
  EXPECT_NEAR(split.intrinsic_bloat_joules, 740 - 400, 1e-9);
  EXPECT_NEAR(split.extrinsic_bloat_joules, 0, 1e-9);
}

TEST(EnergySplitTest, StragglerIsTakenForItsPlanStretched) {
  const Planner planner = Plans(TinyPipeline(2));
  const EnergySplit alone = EnergySplitter(planner).Split(FastPlan(), RunOf(12, 1600, 120), 12);
  EXPECT_NEAR(alone.useful_joules, 1600, 1e-9);
  EXPECT_NEAR(alone.extrinsic_bloat_joules, 0, 1e-9);
  // Twice as slow, and another one four times: 12 s of its own plan's time.
  const EnergySplit behind = EnergySplitter(planner).Split(FastPlan(), RunOf(12, 1600, 120), 24);
  EXPECT_NEAR(behind.extrinsic_bloat_joules, 2 * (740 - 400), 1e-9);
}

TEST(EnergySplitTest, WithoutEnergyThereIsNothingToSplit) {
  const Planner planner = Plans(TinyPipeline(2));
  LimitedPlan free = FastPlan();
  free.computing_joules = 0;
  const EnergySplit split = EnergySplitter(planner).Split(free, RunOf(6, 0, 60), 6);
  EXPECT_NEAR(split.total_joules(), 60, 1e-9);
}

TEST(ExactSumTest, KeepsWhatAdditionLoses) {
  ExactSum sum;
  sum.Add(1);
  for (int i = 0; i < 1000; ++i) sum.Add(1e-17);
  EXPECT_DOUBLE_EQ(sum.value() - 1, 0x1p-52 * 45);
  ExactSum large;
  for (const double value : {1.0, 1e100, 1.0, -1e100}) large.Add(value);
  EXPECT_EQ(large.value(), 2);
}

}  // namespace
}  // namespace perseus::emulate
