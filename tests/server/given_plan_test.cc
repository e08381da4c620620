// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/given_plan.h"

#include <gtest/gtest.h>

#include "common/temporary_directory.h"

namespace perseus::server {
namespace {

constexpr const char* kPlan =
    "[[('forward', 1410), ('backward', 1200)],\n [('forward', 1000), ('backward', 1410)]]\n";

TEST(GivenPlanTest, FitsByPipelineRankOrByRank) {
  const TemporaryDirectory directory;
  directory.Put("plan.py", kPlan);
  const auto plan = GivenPlan::Read(directory.Path("plan.py"));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->Fits({.pipeline_parallel = 2, .data_parallel = 4}));
  EXPECT_TRUE(plan->Fits({.pipeline_parallel = 1, .data_parallel = 2}));
  EXPECT_FALSE(plan->Fits({.pipeline_parallel = 3}));
  const auto& steps = plan->StepsOf({.pipeline_parallel = 2, .data_parallel = 4}, 7, 1);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0].name, "forward");
  EXPECT_EQ(steps[0].clock_mhz, 1000);
  // By rank, where there is one list for each.
  EXPECT_EQ(plan->StepsOf({.pipeline_parallel = 1, .data_parallel = 2}, 1, 0)[0].clock_mhz, 1000);
}

TEST(GivenPlanTest, NothingIsEvaluated) {
  const TemporaryDirectory directory;
  directory.Put("plan.py", "[[__import__('os').system('true')]]");
  EXPECT_FALSE(GivenPlan::Read(directory.Path("plan.py")));
  EXPECT_FALSE(GivenPlan::Read(directory.Path("none.py")));
}

}  // namespace
}  // namespace perseus::server
