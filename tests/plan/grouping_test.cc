// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::RandomRows;
using testing::ElementsAre;

TEST(GroupingTest, AStageIsARankWhereItHasSeveral) {
  std::mt19937 random(1);
  plan_testing::ProfileShape shape;
  shape.stages = 4;
  const CostedPipeline pipeline =
      Costed(RandomRows(random, shape), DagOf("interleaved-1f1b", 4, 4, {}, 2), Blocking(50));
  EXPECT_EQ(GroupComputations(pipeline, Granularity::kStage).size(), 2U);
  EXPECT_EQ(GroupComputations(pipeline, Granularity::kStageType).size(), 8U);
}

TEST(CommonKnobsTest, OneComputationHasItsParetoOptimalKnobs) {
  const CostedPipeline pipeline =
      Costed("0,forward,3000,1,10\n0,forward,2000,2,20\n0,forward,1000,3,5\n0,backward,3000,1,1\n",
             DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_THAT(*CommonKnobs(pipeline, Guard{}, {0}), ElementsAre(0, 2));
}

TEST(CommonKnobsTest, GroupsHaveWhatAllHaveTheBaselineFirst) {
  const CostedPipeline pipeline = Costed(
      "0,forward,4000,5,10\n0,forward,3000,2,20\n0,forward,2000,3,5\n0,forward,1000,1,99\n"
      "0,backward,4000,1,1\n0,backward,2000,4,1\n0,backward,1000,1,1\n",
      DagOf("1f1b", 1, 2), Blocking(0));
  // Sums over two forwards and two backwards: 4: 12, 2: 14, 1: 4; 3 is not in both.
  EXPECT_THAT(*CommonKnobs(pipeline, Guard{}, {0, 1, 2, 3}), ElementsAre(0, 3, 2));
}

TEST(CommonKnobsTest, SaysWhenThereAreNone) {
  const CostedPipeline pipeline =
      Costed("0,forward,2000,1,1\n0,backward,1000,1,1\n", DagOf("1f1b", 1, 1), Blocking(0));
  const auto knobs = CommonKnobs(pipeline, Guard{}, {0, 1});
  ASSERT_FALSE(knobs);
  EXPECT_EQ(knobs.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(knobs.error().message, Mentions("stage", "0"));
}

}  // namespace
}  // namespace perseus::plan
