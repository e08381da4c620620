// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perseus/analysis.h"

namespace perseus {
namespace {

TEST(RunCostTest, AddsUpAWholeRun) {
  // 32,000 GPU hours on 16 GPUs at 2 s an iteration: 3,600,000 iterations.
  const RunSpec spec = {.gpu_hours = 32000, .price_per_kwh = 0.25, .carbon_g_per_kwh = 400};
  const RunCost cost =
      CostOfRun(spec, {.baseline_seconds = 2, .seconds = 2.5, .joules = 10000, .gpus = 16});
  EXPECT_DOUBLE_EQ(cost.gpu_hours, 40000);
  EXPECT_DOUBLE_EQ(cost.mwh, 10);
  EXPECT_DOUBLE_EQ(cost.price, 2500);
  EXPECT_DOUBLE_EQ(cost.carbon_kg, 4000);
}

TEST(RunCostTest, TheBaselineTakesTheHoursGiven) {
  const RunCost cost = CostOfRun({.gpu_hours = 123}, {3, 3, 1, 8});
  EXPECT_DOUBLE_EQ(cost.gpu_hours, 123);
}

TEST(RunCostTest, GuessesNothing) {
  const RunCost none = CostOfRun({.price_per_kwh = 1, .carbon_g_per_kwh = 1}, {2, 2, 100, 4});
  EXPECT_EQ(none.gpu_hours, 0);
  EXPECT_EQ(none.mwh, 0);
  const RunCost energy = CostOfRun({.gpu_hours = 10}, {2, 2, 100, 4});
  EXPECT_GT(energy.mwh, 0);
  EXPECT_EQ(energy.price, 0);
  EXPECT_EQ(energy.carbon_kg, 0);
  EXPECT_EQ(CostOfRun({.gpu_hours = 10}, {0, 2, 100, 4}).mwh, 0);
  EXPECT_EQ(CostOfRun({.gpu_hours = 10}, {2, 2, 100, 0}).mwh, 0);
}

}  // namespace
}  // namespace perseus
