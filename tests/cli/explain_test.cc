// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/explain.h"

#include <gtest/gtest.h>

namespace perseus {
namespace {

// Two stages at 10 W; stage 1 is critical, stage 0 runs slower.
ExplainInput TwoStages() {
  ExplainInput input;
  input.total_blocking_power_watts = 20;
  input.baseline_iteration_seconds = 4;
  input.iteration_seconds = 4.5;
  input.computations.push_back({"forward", 0, Phase::kWarmUp, 10, 1, 100, false, 1.5, 80, true});
  input.computations.push_back({"backward", 0, Phase::kCoolDown, 10, 2, 200, false, 2, 200, true});
  input.computations.push_back({"forward", 1, Phase::kSteady, 10, 1.5, 150, true, 2, 125, true});
  return input;
}

TEST(ExplainTest, DividesTheSavingWithoutRest) {
  const Explanation explanation = ExplainSaving(TwoStages());
  // (100 - 80) + 10 x 0.5 on stage 0, (150 - 125) + 10 x 0.5 on stage 1.
  EXPECT_DOUBLE_EQ(explanation.computation_saving_joules, 55);
  EXPECT_DOUBLE_EQ(explanation.iteration_saving_joules, -10);
  EXPECT_DOUBLE_EQ(explanation.saving_joules, 45);
  ASSERT_EQ(explanation.stages.size(), 2u);
  EXPECT_DOUBLE_EQ(explanation.stages[0].saving_joules, 25);
  EXPECT_DOUBLE_EQ(explanation.stages[1].saving_joules, 30);
  for (const auto* groups : {&explanation.stages, &explanation.types, &explanation.phases}) {
    double joules = 0;
    double percent = 0;
    for (const SavingShare& share : *groups) {
      joules += share.saving_joules;
      percent += share.share_percent;
    }
    EXPECT_DOUBLE_EQ(joules, 55);
    EXPECT_DOUBLE_EQ(percent, 100);
  }
}

TEST(ExplainTest, NamesTheCriticalStageAndCounts) {
  const Explanation explanation = ExplainSaving(TwoStages());
  EXPECT_EQ(explanation.critical_stage, 1);
  EXPECT_EQ(explanation.stages[0].computations, 2);
  EXPECT_EQ(explanation.stages[0].slowed, 1);
  EXPECT_EQ(explanation.stages[0].baseline_critical, 0);
  EXPECT_EQ(explanation.stages[0].critical, 2);
  EXPECT_EQ(explanation.phases.front().label, "warm-up");
  EXPECT_EQ(explanation.phases.back().label, "cool-down");
  EXPECT_EQ(explanation.types.front().label, "backward");
}

TEST(ExplainTest, NothingToExplainIsNoError) {
  const Explanation explanation = ExplainSaving({});
  EXPECT_EQ(explanation.critical_stage, std::nullopt);
  EXPECT_EQ(explanation.saving_joules, 0);
  EXPECT_TRUE(explanation.stages.empty());
}

}  // namespace
}  // namespace perseus
