// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/block_bound.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "perseus/planner.h"
#include "plan/pipelines.h"
#include "plan/plan_search.h"
#include "planner_testing.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::LeastEffectiveEnergy;
using plan_testing::RandomRows;
using plan_testing::Singles;

EffectiveBound BoundOf(const CostedPipeline& pipeline, double seconds, double effort) {
  const auto walked =
      WalkedPipeline::Make(*MakeTimeCostProblem(pipeline, Guard{}), Guard{}, {}, nullptr);
  EXPECT_TRUE(walked) << walked.error().message;
  const auto bound = BoundPlans(pipeline, **walked, seconds, effort);
  EXPECT_TRUE(bound) << bound.error().message;
  return *bound;
}

// Small enough to try all plans: the bound is below the best and, as one block
// holds everything, next to it.
TEST(BlockBoundTest, IsTheOptimumOfSmallPipelinesAndNeverAbove) {
  std::mt19937 random(5);
  int above_relaxation = 0;
  for (int round = 0; round < 16; ++round) {
    const std::string rows =
        RandomRows(random, {.stages = 2, .clocks = 3, .noise = round % 2 == 0 ? 0.1 : 0.0});
    const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 2, 3), Blocking(20));
    const Planner planner = plan_testing::Plans(pipeline);
    const double least = planner.frontier().fastest_seconds;
    const double most = planner.frontier().tstar_seconds;
    for (const double share : {0.0, 0.2, 0.5, 0.9}) {
      const double seconds = least + share * (most - least);
      const EffectiveBound bound = BoundOf(pipeline, seconds, 1);
      const double best = LeastEffectiveEnergy(pipeline, Singles(pipeline), seconds);
      const double size = std::abs(best) + 1;
      ASSERT_LE(bound.discrete_joules, best + 1e-9 * size) << round << " " << share;
      ASSERT_GE(bound.discrete_joules, best - 1e-7 * size) << round << " " << share;
      ASSERT_LE(bound.relaxed_joules, bound.discrete_joules);
      if (bound.discrete_joules > bound.relaxed_joules + 1e-6 * size) ++above_relaxation;
    }
  }
  EXPECT_GT(above_relaxation, 20);
}

// Of several blocks, with releases and delays between them.
TEST(BlockBoundTest, OfSeveralBlocksIsNeverAboveTheOptimum) {
  std::mt19937 random(6);
  int gained = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string rows = RandomRows(random, {.stages = 3, .clocks = 3, .noise = 0.1});
    const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 3, 2), Blocking(20));
    const Planner planner = plan_testing::Plans(pipeline);
    const double seconds = 1.05 * planner.frontier().fastest_seconds;
    const double best = LeastEffectiveEnergy(pipeline, Singles(pipeline), seconds);
    for (const double effort : {1e-5, 1e-4, 1e-3, 1.0}) {
      const EffectiveBound bound = BoundOf(pipeline, seconds, effort);
      ASSERT_LE(bound.discrete_joules, best + 1e-9 * std::abs(best)) << round;
      if (bound.discrete_joules > bound.relaxed_joules + 1e-6 * std::abs(best)) ++gained;
    }
  }
  EXPECT_GT(gained, 10);
}

// Where every block has been searched as far as usual, further work goes deeper.
TEST(BlockBoundTest, DeepRoundsRaiseItAndStayBelowThePlan) {
  std::mt19937 random(11);
  const std::string rows = RandomRows(random, {.stages = 3, .clocks = 8, .noise = 0.05});
  const Planner planner = plan_testing::Plans(Costed(rows, DagOf("1f1b", 3, 12), Blocking(20)));
  const Plan plan = *planner.PlanFor(planner.baseline().iteration_time_seconds, {.effort = 0.3});
  const EffectiveBound usual = BoundOf(planner.pipeline(), plan.iteration_time_seconds, 1);
  const EffectiveBound deep = BoundOf(planner.pipeline(), plan.iteration_time_seconds, 4);
  ASSERT_LT(usual.proven, usual.blocks);
  EXPECT_GT(deep.discrete_joules, usual.discrete_joules);
  EXPECT_LE(deep.discrete_joules,
            plan_testing::EffectiveEnergy(planner.pipeline(), plan.options) * (1 + 1e-12) + 1e-9);
}

// Larger ones: what the search finds is never below.
TEST(BlockBoundTest, NoPlanIsBelowIt) {
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    const std::string rows = RandomRows(random, {.stages = 4, .clocks = 5, .noise = 0.05});
    const Planner planner = plan_testing::Plans(Costed(rows, DagOf("1f1b", 4, 8), Blocking(20)));
    const double seconds = (1 + 0.03 * round) * planner.baseline().iteration_time_seconds;
    Plan plan = *planner.PlanFor(seconds, {.effort = 0.3});
    const EffectiveBound bound = BoundOf(planner.pipeline(), plan.iteration_time_seconds, 0.3);
    ASSERT_LE(bound.discrete_joules,
              plan_testing::EffectiveEnergy(planner.pipeline(), plan.options) * (1 + 1e-12) + 1e-9);
    ASSERT_TRUE(planner.AddDiscreteBound(&plan, 0.3));
    ASSERT_TRUE(plan.discrete_bound);
    EXPECT_GE(plan.discrete_bound->lower_bound_joules, plan.lower_bound_joules);
    EXPECT_LE(plan.discrete_bound->gap_percent, plan.gap_percent);
  }
}

// The last bit of such a time is worth more than a joule.
TEST(BlockBoundTest, IsNotAboveAPlanWhereKnobsAreNearlyTied) {
  std::mt19937 random(9);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 40; ++round) {
    std::string rows;
    for (const char* const what : {"forward", "backward"}) {
      const double seconds = 1 + 2 * unit(random);
      const double slower = seconds * (1 + std::pow(10, -8.5 + 1.5 * unit(random)));
      rows += fmt::format("0,{},2000,{},1000\n0,{},1000,{},{}\n", what, seconds, what, slower,
                          1 - unit(random));
    }
    const Planner planner = plan_testing::Plans(Costed(rows, DagOf("1f1b", 1, 96), Blocking(0)));
    const double seconds =
        planner.baseline().iteration_time_seconds * (1 + std::pow(10, -10 + 2 * unit(random)));
    Plan plan = *planner.PlanFor(seconds, {.effort = 0.02});
    ASSERT_LE(plan.lower_bound_joules, plan.energy_joules * (1 + 1e-9)) << rows;
    const auto added = planner.AddDiscreteBound(&plan, 0.02);
    ASSERT_TRUE(added) << rows << added.error().message;
  }
}

TEST(BlockBoundTest, MoreEffortIsNeverLess) {
  std::mt19937 random(8);
  const std::string rows = RandomRows(random, {.stages = 4, .clocks = 6, .noise = 0.05});
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 4, 8), Blocking(20));
  const double seconds = plan_testing::Plans(pipeline).baseline().iteration_time_seconds;
  double before = 0;
  for (const double effort : {1e-4, 1e-3, 1e-2, 0.1, 0.5}) {
    const EffectiveBound bound = BoundOf(pipeline, seconds, effort);
    EXPECT_GE(bound.discrete_joules, before);
    EXPECT_EQ(bound.discrete_joules, BoundOf(pipeline, seconds, effort).discrete_joules);
    before = bound.discrete_joules;
  }
}

}  // namespace
}  // namespace perseus::plan
