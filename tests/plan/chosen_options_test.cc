// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>

#include "plan/pipelines.h"
#include "plan/plan_search.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::IterationSeconds;

constexpr const char* kRows =
    "0,forward,3000,1,10\n0,forward,2000,2,6\n0,forward,1000,3,5\n"
    "0,backward,3000,2,20\n0,backward,2000,3,12\n0,backward,1000,4,2\n";

TEST(ChosenOptionsTest, TakesWhatItIsGiven) {
  const CostedPipeline pipeline = Costed(kRows, DagOf("1f1b", 1, 1), Blocking(0));
  const std::vector<std::vector<int>> knobs = {{0, 1, 2}, {0, 1, 2}};
  const Guard guard;
  const ChosenOptions chosen(pipeline, guard, knobs, {1, 2});
  EXPECT_EQ(chosen.options()[0].time_seconds, 2);
  EXPECT_EQ(chosen.options()[1].energy_joules, 2);
  EXPECT_EQ(chosen.GuardedSeconds(), 6);
}

TEST(ChosenOptionsTest, MeetsADeadlineAtLeastCost) {
  const CostedPipeline pipeline = Costed(kRows, DagOf("1f1b", 1, 1), Blocking(0));
  const std::vector<std::vector<int>> knobs = {{0, 1, 2}, {0, 1, 2}};
  const Guard guard;
  ChosenOptions chosen(pipeline, guard, knobs, {2, 2});
  EXPECT_TRUE(chosen.MeetDeadline(7));
  EXPECT_EQ(chosen.GuardedSeconds(), 7);
  EXPECT_TRUE(chosen.MeetDeadline(6));  // A joule for a second of the forward.
  EXPECT_EQ(chosen.options()[0].knob, 1);
  EXPECT_EQ(chosen.options()[1].knob, 2);
  EXPECT_TRUE(chosen.MeetDeadline(3));
  EXPECT_FALSE(chosen.MeetDeadline(2.9));
}

TEST(ChosenOptionsTest, TheMarginLeavesTheBaselineAlone) {
  const CostedPipeline pipeline = Costed(kRows, DagOf("1f1b", 1, 1), Blocking(0));
  const std::vector<std::vector<int>> knobs = {{0, 1, 2}, {0, 1, 2}};
  const Guard guard = {.sigmas = 0, .fraction = 0.5};
  const ChosenOptions fast(pipeline, guard, knobs, {0, 0});
  EXPECT_EQ(fast.GuardedSeconds(), 3);
  const ChosenOptions slow(pipeline, guard, knobs, {1, 0});
  EXPECT_EQ(slow.GuardedSeconds(), 5);
}

TEST(ChosenOptionsTest, TheMarginIsTheLargerOfSigmasAndFraction) {
  const CostedPipeline pipeline = Costed(
      "stage,instruction,knob,time,energy,time_std\n0,forward,2000,1,9,0.5\n"
      "0,forward,1000,2,5,0.25\n0,backward,2000,1,9,0.5\n",
      DagOf("1f1b", 1, 1), Blocking(0));
  const CostTable& table = pipeline.TableOf(0);
  EXPECT_EQ((Guard{2, 0.1}).Seconds(table, table.all_options[1]), 2.5);
  EXPECT_EQ((Guard{2, 0.5}).Seconds(table, table.all_options[1]), 3);
  EXPECT_EQ((Guard{2, 0.5}).Seconds(table, table.all_options[0]), 1);
}

TEST(ChosenOptionsTest, ReclaimsSlackWithoutPassingTheDeadline) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    plan_testing::ProfileShape shape;
    shape.stages = 3;
    shape.clocks = 6;
    shape.noise = round % 2 == 0 ? 0 : 0.05;
    const CostedPipeline pipeline =
        Costed(plan_testing::RandomRows(random, shape), DagOf("1f1b", 3, 4), Blocking(60));
    std::vector<std::vector<int>> knobs;
    std::vector<int> fastest;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      std::vector<int>& row = knobs.emplace_back();
      for (const CostOption& option : pipeline.TableOf(i).options) row.push_back(option.knob);
      fastest.push_back(row.front());
    }
    const Guard guard;
    ChosenOptions chosen(pipeline, guard, knobs, fastest);
    const double seconds = chosen.GuardedSeconds() * (1 + 0.02 * (round % 5));
    const double before = EffectiveEnergy(pipeline, chosen.options());
    chosen.ReclaimSlack(seconds);
    EXPECT_LE(IterationSeconds(pipeline, chosen.options()), seconds);
    EXPECT_LT(EffectiveEnergy(pipeline, chosen.options()), before);
    EXPECT_EQ(chosen.GuardedSeconds(), IterationSeconds(pipeline, chosen.options()));
    // Nothing is left: no computation can be slowed down alone.
    std::vector<CostOption> options = chosen.options();
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      for (const CostOption& option : pipeline.TableOf(i).options) {
        const CostOption kept = options[i];
        const double cost = EffectiveEnergy(pipeline, options);
        options[i] = option;
        if (EffectiveEnergy(pipeline, options) < cost - 1e-9) {
          EXPECT_GT(IterationSeconds(pipeline, options), seconds * (1 - 1e-12));
        }
        options[i] = kept;
      }
    }
  }
}

}  // namespace
}  // namespace perseus::plan
