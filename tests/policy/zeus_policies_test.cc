// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/zeus_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/pipelines.h"
#include "policy/table_choice.h"

namespace perseus::policy {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using testing::ElementsAre;

// Stage 1 is the heavier one.
const std::string kZeusRows =
    "0,forward,1000,1,300\n0,forward,750,1.4,240\n0,forward,500,2,200\n"
    "0,backward,1000,2,600\n0,backward,750,2.8,480\n0,backward,500,4,400\n"
    "1,forward,1000,1.5,450\n1,forward,750,2,380\n1,forward,500,3,300\n"
    "1,backward,1000,3,900\n1,backward,750,4,760\n1,backward,500,6,600\n";

// The tables of two stages come in the order F0 F1 B1 B0.
CostedPipeline TwoStages(const std::string& rows) {
  return Costed(rows, DagOf("1f1b", 2, 1), Blocking(10));
}

TEST(OptionAt, TakesTheNearestLowerClock) {
  const CostedPipeline pipeline = TwoStages(
      "0,forward,1000,1,9\n0,forward,700,1,9\n0,backward,900,1,9\n"
      "1,forward,1000,1,9\n1,backward,600,1,9\n");
  ASSERT_EQ(pipeline.knobs.size(), 4);  // 1000, 900, 700, 600.
  const CostTable& forward = pipeline.tables[0];
  EXPECT_EQ(OptionAt(pipeline, forward, 0), 0);
  EXPECT_EQ(OptionAt(pipeline, forward, 1), 1);
  EXPECT_EQ(OptionAt(pipeline, forward, 2), 1);
  EXPECT_EQ(OptionAt(pipeline, forward, 3), std::nullopt);
  // So there is no plan for 600 MHz, and those for 900 and 700 differ.
  EXPECT_THAT(ZeusGlobalMembers(TwoStages("0,forward,1000,1,9\n0,forward,700,1,9\n"
                                          "0,backward,700,1,9\n0,backward,600,1,9\n"
                                          "1,forward,700,1,9\n1,backward,700,1,9\n")),
              ElementsAre(TableChoice{0, 0, 0, 0}, TableChoice{1, 0, 0, 0}));
}

TEST(ZeusGlobal, HasOneMemberForEachClock) {
  EXPECT_THAT(
      ZeusGlobalMembers(TwoStages(kZeusRows)),
      ElementsAre(TableChoice{0, 0, 0, 0}, TableChoice{1, 1, 1, 1}, TableChoice{2, 2, 2, 2}));
}

TEST(ZeusGlobal, WorksWithLabels) {
  const CostedPipeline pipeline = TwoStages(
      "0,forward,slow,2,1\n0,forward,fast,1,2\n0,backward,slow,2,1\n0,backward,fast,1,2\n"
      "1,forward,slow,2,1\n1,forward,fast,1,2\n1,backward,fast,1,2\n");
  // "slow" is missing for the backward of stage 1, and nothing is near to it.
  EXPECT_THAT(ZeusGlobalMembers(pipeline), ElementsAre(TableChoice{1, 1, 0, 1}));
}

TEST(ZeusPerStage, BalancesForwardTimes) {
  // 1000: stage 1 takes 1.5 s, so stage 0 may take 1.4 s. 750: 2 s, and so may
  // stage 0 at 500. 500: nobody has a lower clock.
  EXPECT_THAT(
      ZeusPerStageMembers(TwoStages(kZeusRows)),
      ElementsAre(TableChoice{1, 0, 0, 1}, TableChoice{2, 1, 1, 2}, TableChoice{2, 2, 2, 2}));
}

TEST(ZeusPerStage, LeavesOutClocksThatCostMore) {
  // As kZeusRows, but at 500 stage 0 needs more than at 750 although it waits less:
  // 440 + 600 - 10 x 6 against 240 + 480 - 10 x 4.2.
  std::string rows = kZeusRows;
  rows.replace(rows.find("500,2,200"), 9, "500,2,440");
  rows.replace(rows.find("500,4,400"), 9, "500,4,600");
  EXPECT_THAT(
      ZeusPerStageMembers(TwoStages(rows)),
      ElementsAre(TableChoice{1, 0, 0, 1}, TableChoice{1, 1, 1, 1}, TableChoice{1, 2, 2, 1}));
}

TEST(ZeusPerStage, TheHeaviestStageDependsOnTheClock) {
  // At 500 stage 0 is the slower one, so stage 1 need not go below 750.
  const std::string rows =
      "0,forward,1000,1,300\n0,forward,500,4,100\n0,backward,1000,1,300\n0,backward,500,4,100\n"
      "1,forward,1000,2,300\n1,forward,500,3,200\n1,backward,1000,2,300\n1,backward,500,3,200\n";
  EXPECT_THAT(ZeusPerStageMembers(TwoStages(rows)),
              ElementsAre(TableChoice{0, 0, 0, 0}, TableChoice{1, 1, 1, 1}));
}

TEST(ZeusPerStage, GivesARankOfSeveralStagesOneClock) {
  // Ranks 0 and 1 hold stages 0, 2 and 1, 3: 2 + 1 s and 1 + 1.5 s of forwards.
  std::string rows;
  const std::vector<double> seconds = {2, 1, 1, 1.5};
  for (int stage = 0; stage < 4; ++stage) {
    for (const std::string type : {"forward", "backward"}) {
      for (const int clock : {1000, 900, 800}) {
        const double time = seconds[stage] * 1000 / clock;
        rows += std::to_string(stage) + "," + type + "," + std::to_string(clock) + "," +
                std::to_string(time) + "," + std::to_string(clock * time) + "\n";
      }
    }
  }
  const CostedPipeline pipeline =
      Costed(rows, DagOf("interleaved-1f1b", 4, 4, {}, 2), Blocking(10));
  const std::vector<int> rank_of = RanksOfTables(pipeline);
  // Rank 0 at 1000: 3 s. Rank 1: 2.5 s at 1000, 2.78 s at 900, 3.125 s at 800.
  const std::vector<TableChoice> members = ZeusPerStageMembers(pipeline);
  ASSERT_EQ(members.size(), 3);
  for (std::size_t t = 0; t < rank_of.size(); ++t) {
    EXPECT_EQ(members[0][t], rank_of[t] == 0 ? 0 : 1);
  }
}

TEST(ZeusPerStage, CountsForwardsWithoutTheBackwardsTheyAreFusedWith) {
  const auto schedule =
      ParseSchedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "fused.csv");
  ASSERT_TRUE(schedule) << schedule.error().message;
  const auto dag = BuildDag(*schedule, {});
  ASSERT_TRUE(dag) << dag.error().message;
  // Stage 1 is the heavier one; if the fused 3 s counted, stage 0 would be.
  const CostedPipeline pipeline = Costed(
      "0,forward,1000,1,300\n0,forward,500,2,200\n0,backward,1000,2,600\n0,backward,500,4,400\n"
      "1,forward,1000,2,600\n1,forward,500,4,400\n1,backward,1000,2,600\n1,backward,500,4,400\n",
      *dag, Blocking(10));
  const std::vector<int> rank_of = RanksOfTables(pipeline);
  const std::vector<TableChoice> members = ZeusPerStageMembers(pipeline);
  ASSERT_EQ(members.size(), 2);
  ASSERT_EQ(rank_of.size(), 5);
  for (std::size_t t = 0; t < rank_of.size(); ++t) EXPECT_EQ(members[0][t], 1 - rank_of[t]);
}

}  // namespace
}  // namespace perseus::policy
