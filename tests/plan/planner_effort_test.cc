// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// More effort, more time, more steps: never a worse plan.

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "plan/pipelines.h"
#include "plan/planner_testing.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::CheckHonest;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::kLittle;
using plan_testing::Plans;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;

TEST(PlannerTest, IsDeterministic) {
  const auto plan_once = [](double effort) {
    std::mt19937 random(29);
    ProfileShape shape;
    shape.stages = 4;
    shape.clocks = 8;
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 4, 8), Blocking(70)));
    std::vector<int> knobs;
    auto plan = planner.PlanFor(planner.baseline().iteration_time_seconds, {.effort = effort});
    // A second question to the same planner has the same answer.
    const auto again =
        planner.PlanFor(planner.baseline().iteration_time_seconds, {.effort = effort});
    EXPECT_EQ(plan->energy_joules, again->energy_joules);
    for (const CostOption& option : plan->options) knobs.push_back(option.knob);
    return knobs;
  };
  EXPECT_EQ(plan_once(0.05), plan_once(0.05));
}

// Random pipelines: small ones that are branched, and larger ones.
Planner RandomPlanner(std::mt19937& random, int round) {
  ProfileShape shape;
  shape.stages = 3 + round % 2;
  shape.clocks = 6 + round % 7;
  shape.noise = round % 3 == 0 ? 0.05 : 0;
  shape.spread = 0.01;
  const int microbatches = round % 4 == 0 ? 4 : 9 + 5 * (round % 4);
  return Plans(
      Costed(RandomRows(random, shape), DagOf("1f1b", shape.stages, microbatches), Blocking(70)));
}

TEST(PlannerTest, MoreEffortIsNeverWorse) {
  std::mt19937 random(31);
  for (int round = 0; round < 12; ++round) {
    const Planner planner = RandomPlanner(random, round);
    const Frontier& frontier = planner.frontier();
    const double seconds =
        frontier.fastest_seconds +
        (frontier.tstar_seconds - frontier.fastest_seconds) * 0.09 * (round % 10);
    PlanConstraints constraints;
    if (round % 5 == 4) constraints.time_margin_fraction = 0.01;
    double last = std::numeric_limits<double>::infinity();
    for (const double effort : {1e-6, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1}) {
      const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = effort});
      if (!plan && round % 5 > 3) break;  // Too little time for the constraint.
      ASSERT_TRUE(plan) << plan.error().message;
      CheckHonest(planner, *plan);
      const double joules = EffectiveEnergy(planner.pipeline(), plan->options);
      EXPECT_LE(joules, last) << round << ' ' << effort;
      last = joules;
    }
  }
}

TEST(PlannerTest, EffortBoundsTheWork) {
  std::mt19937 random(35);
  const Planner planner = RandomPlanner(random, 3);
  const double seconds = planner.baseline().iteration_time_seconds;
  for (const double effort : {0.001, 0.01, 0.1}) {
    int calls = 0;
    double share = 0;
    ASSERT_TRUE(
        planner.PlanFor(seconds, {.effort = effort, .progress = [&](const Progress& progress) {
                                    ++calls;
                                    EXPECT_GE(progress.share, share);
                                    EXPECT_LE(progress.share, 1);
                                    share = progress.share;
                                    return true;
                                  }}));
    EXPECT_GT(calls, 0);
  }
}

TEST(PlannerTest, TellsOfBetterPlansAndStopsWhenTold) {
  std::mt19937 random(36);
  for (int round = 0; round < 4; ++round) {
    const Planner planner = RandomPlanner(random, round);
    const double seconds = 1.02 * planner.baseline().iteration_time_seconds;
    std::vector<Plan> told;
    bool first_is_early = false;
    const auto plan =
        planner.PlanFor(seconds, {.effort = 0.1, .progress = [&](const Progress& progress) {
                                    if (progress.better == nullptr) return true;
                                    if (told.empty()) first_is_early = progress.share < 0.05;
                                    told.push_back(*progress.better);
                                    return true;
                                  }});
    ASSERT_TRUE(plan);
    ASSERT_GT(told.size(), 1U);
    EXPECT_TRUE(first_is_early);
    double last = std::numeric_limits<double>::infinity();
    for (const Plan& better : told) {
      CheckHonest(planner, better);
      EXPECT_EQ(better.requested_time_seconds, seconds);
      const double joules = EffectiveEnergy(planner.pipeline(), better.options);
      EXPECT_LT(joules, last);
      last = joules;
    }
    EXPECT_EQ(plan->energy_joules, told.back().energy_joules);
    // What is there when the caller has enough is the result.
    for (const std::size_t wanted : {std::size_t{1}, told.size() - 1}) {
      std::size_t count = 0;
      const auto stopped =
          planner.PlanFor(seconds, {.effort = 1e3, .progress = [&](const Progress& progress) {
                                      return progress.better == nullptr || ++count < wanted;
                                    }});
      ASSERT_TRUE(stopped);
      EXPECT_EQ(stopped->energy_joules, told[wanted - 1].energy_joules);
    }
  }
}

// However little the work is, down to the least effort of a job.
TEST(PlannerTest, TheFirstPlanTakesSomeOfTheWorkAndNoMoreThanATwentieth) {
  std::mt19937 random(38);
  ProfileShape shape;
  shape.stages = 4;
  shape.clocks = 12;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 4, 96), Blocking(70)));
  for (const double factor : {1.0, 1.05}) {
    for (const double effort : {0.001, 0.01, 1.0}) {
      double share = -1;
      const auto plan =
          planner.PlanFor(factor * planner.baseline().iteration_time_seconds,
                          {.effort = effort, .progress = [&](const Progress& progress) {
                             share = progress.share;
                             return progress.better == nullptr;
                           }});
      ASSERT_TRUE(plan) << plan.error().message;
      CheckHonest(planner, *plan);
      EXPECT_GT(share, 0) << factor << ' ' << effort;
      EXPECT_LE(share, 0.05) << factor << ' ' << effort;
    }
  }
}

TEST(PlannerTest, AManySteppedLadderNeverGetsWorse) {
  std::mt19937 random(37);
  for (int round = 0; round < 6; ++round) {
    const Planner planner = RandomPlanner(random, round);
    PlanConstraints constraints;
    if (round == 2) constraints.granularity = Granularity::kStage;
    if (round == 4) constraints.granularity = Granularity::kPhase;
    int calls = 0;
    const auto plans = planner.Ladder(
        12, {.constraints = constraints, .effort = 0.003, .progress = [&](const Progress&) {
               ++calls;
               return true;
             }});
    ASSERT_TRUE(plans) << plans.error().message;
    EXPECT_EQ(calls, 12);
    ASSERT_FALSE(plans->empty());
    double last = std::numeric_limits<double>::infinity();
    double requested = 0;
    for (const Plan& plan : *plans) {
      CheckHonest(planner, plan);
      EXPECT_GT(plan.requested_time_seconds, requested);
      requested = plan.requested_time_seconds;
      const double joules = EffectiveEnergy(planner.pipeline(), plan.options);
      EXPECT_LE(joules, last);
      last = joules;
    }
    EXPECT_EQ(requested, planner.frontier().tstar_seconds);
    if (!constraints.any()) {
      EXPECT_EQ(plans->size(), 12U);
      EXPECT_EQ(plans->front().requested_time_seconds, planner.frontier().fastest_seconds);
    }
  }
  const Planner planner = RandomPlanner(random, 0);
  EXPECT_FALSE(planner.Ladder(1));
  const auto stopped =
      planner.Ladder(5, {.effort = 0.001, .progress = [](const Progress&) { return false; }});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->size(), 1U);
}

TEST(PlannerTest, CopiesShareWhatTheyReferTo) {
  std::mt19937 random(38);
  std::optional<Planner> first = RandomPlanner(random, 0);
  const Planner second = *first;
  const CostedPipeline* const pipeline = &first->pipeline();
  first.reset();
  EXPECT_EQ(&second.pipeline(), pipeline);
  EXPECT_TRUE(second.PlanFor(second.frontier().tstar_seconds, {.effort = kLittle}));
}

TEST(PlannerTest, GivesUpWhereItIsTold) {
  std::mt19937 random(33);
  PlannerOptions options;
  int asked = 0;
  options.progress = [&](const Progress&) { return ++asked == 0; };
  const auto planner =
      Planner::Create(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)), options);
  ASSERT_FALSE(planner);
  EXPECT_EQ(planner.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace perseus
