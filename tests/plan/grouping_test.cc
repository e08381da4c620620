// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::RandomRows;
using testing::ElementsAre;

CostedPipeline Pipeline(int stages, int microbatches) {
  std::mt19937 random(1);
  plan_testing::ProfileShape shape;
  shape.stages = stages;
  return Costed(RandomRows(random, shape), DagOf("1f1b", stages, microbatches), Blocking(50));
}

// Every computation is in exactly one group, members ascend, groups are in
// order of their first member.
void CheckForm(const CostedPipeline& pipeline, const std::vector<std::vector<int>>& groups) {
  std::vector<int> group_of(pipeline.dag.size(), -1);
  int previous_first = -1;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int>& members = groups[g];
    ASSERT_FALSE(members.empty());
    EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
    EXPECT_GT(members.front(), previous_first);
    previous_first = members.front();
    for (const int i : members) {
      EXPECT_EQ(group_of[i], -1);
      group_of[i] = static_cast<int>(g);
      EXPECT_EQ(pipeline.dag.computations[i].rank, pipeline.dag.computations[members[0]].rank);
    }
  }
  EXPECT_EQ(std::count(group_of.begin(), group_of.end(), -1), 0);
}

TEST(GroupingTest, ByComputation) {
  const CostedPipeline pipeline = Pipeline(2, 3);
  const std::vector<std::vector<int>> groups =
      GroupComputations(pipeline, Granularity::kComputation);
  EXPECT_EQ(groups.size(), 12U);
  CheckForm(pipeline, groups);
}

TEST(GroupingTest, ByWhatTheyAre) {
  const CostedPipeline pipeline = Pipeline(3, 6);
  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  for (const Granularity granularity :
       {Granularity::kPhase, Granularity::kStageType, Granularity::kStage}) {
    const std::vector<std::vector<int>> groups = GroupComputations(pipeline, granularity);
    CheckForm(pipeline, groups);
    using Key = std::tuple<int, int, int>;
    std::set<Key> keys;
    for (const std::vector<int>& members : groups) {
      std::set<Key> of_group;
      for (const int i : members) {
        const Computation& c = pipeline.dag.computations[i];
        const int type = granularity == Granularity::kStage ? 0 : static_cast<int>(c.id.type);
        const int phase = granularity == Granularity::kPhase ? static_cast<int>(phases[i]) : 0;
        of_group.insert({c.id.stage, type, phase});
      }
      EXPECT_EQ(of_group.size(), 1U);                      // A group is of one kind,
      EXPECT_TRUE(keys.insert(*of_group.begin()).second);  // and a kind is one group.
    }
  }
  EXPECT_EQ(GroupComputations(pipeline, Granularity::kStage).size(), 3U);
  EXPECT_EQ(GroupComputations(pipeline, Granularity::kStageType).size(), 6U);
}

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
