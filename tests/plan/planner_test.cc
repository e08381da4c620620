// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/planner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "plan/cost_options.h"
#include "plan/grouping.h"
#include "plan/pipelines.h"
#include "plan/planner_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::CheckHonest;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::IterationSeconds;
using plan_testing::kLittle;
using plan_testing::LeastEffectiveEnergy;
using plan_testing::Plans;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using testing::HasSubstr;

struct Shape {
  const char* schedule;
  int stages;
  int virtual_stages;
  int microbatches;
};

TEST(PlannerTest, PlansAreHonestForEveryScheduleAndTarget) {
  std::mt19937 random(21);
  for (const Shape& shape :
       {Shape{"1f1b", 4, 1, 6}, Shape{"gpipe", 3, 1, 4}, Shape{"looped-bfs", 4, 2, 4},
        Shape{"interleaved-1f1b", 4, 2, 4}, Shape{"megatron-interleaved", 4, 2, 4},
        Shape{"interleaved-zero-bubble", 4, 2, 4}, Shape{"zbv-zero-bubble", 4, 2, 4},
        Shape{"dualpipev", 4, 2, 4}}) {
    for (const double noise : {0.0, 0.06}) {
      ProfileShape profile;
      profile.stages = shape.stages;
      profile.clocks = 7;
      profile.noise = noise;
      FixedTimes fixed;
      if (noise > 0) {
        fixed.comm_delay_seconds = {0.03};
        fixed.data_loading_seconds = 0.01;
        fixed.iteration_overhead_seconds = 0.2;
      }
      const Planner planner = Plans(Costed(
          RandomRows(random, profile),
          DagOf(shape.schedule, shape.stages, shape.microbatches, fixed, shape.virtual_stages),
          Blocking(70)));
      const Frontier& frontier = planner.frontier();
      EXPECT_LE(frontier.fastest_seconds, frontier.min_energy_seconds);
      EXPECT_LE(frontier.min_energy_seconds, frontier.tstar_seconds);
      CheckHonest(planner, planner.baseline());
      const double first = frontier.fastest_seconds;
      const double span = frontier.tstar_seconds - first;
      for (const double seconds :
           {first, first * (1 + 1e-12), first + 0.01 * span, first + 0.2 * span,
            first + 0.61 * span, frontier.min_energy_seconds, frontier.tstar_seconds,
            1.5 * frontier.tstar_seconds,
            std::max(first, planner.baseline().iteration_time_seconds)}) {
        const auto plan = planner.PlanFor(seconds, {.effort = kLittle});
        ASSERT_TRUE(plan) << shape.schedule << ": " << plan.error().message;
        EXPECT_EQ(plan->requested_time_seconds, seconds);
        CheckHonest(planner, *plan);
      }
    }
  }
}

TEST(PlannerTest, SmallPlansAreOptimal) {
  std::mt19937 random(22);
  int constrained = 0;
  for (int round = 0; round < 30; ++round) {
    ProfileShape shape;
    shape.noise = round % 3 == 0 ? 0.08 : 0;
    shape.spread = 0.01;
    shape.labels = round % 4 == 1;
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 2, 1 + round % 2), Blocking(60)));
    const CostedPipeline& pipeline = planner.pipeline();
    const Frontier& frontier = planner.frontier();
    const double span = frontier.tstar_seconds - frontier.fastest_seconds;
    const double seconds = frontier.fastest_seconds + span * (0.03 + 0.13 * (round % 8));
    for (const Granularity granularity : {Granularity::kComputation, Granularity::kPhase,
                                          Granularity::kStageType, Granularity::kStage}) {
      PlanConstraints constraints;
      constraints.granularity = granularity;
      if (round % 5 == 4) constraints.time_margin_sigmas = 2;
      const plan::Guard guard = {constraints.time_margin_sigmas, 0};
      const auto groups = plan::GroupComputations(pipeline, constraints.granularity);
      const double least = LeastEffectiveEnergy(pipeline, groups, seconds, guard);
      const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = 0.1});
      ASSERT_EQ(plan.has_value(), std::isfinite(least)) << round;
      if (!plan) continue;
      if (granularity != Granularity::kComputation) ++constrained;
      EXPECT_NEAR(EffectiveEnergy(pipeline, plan->options), least, 1e-9 * plan->energy_joules)
          << round << " " << GranularityName(granularity);
    }
  }
  EXPECT_GT(constrained, 20);
}

TEST(PlannerTest, TheFrontierIsALowerBoundForEveryChoice) {
  std::mt19937 random(23);
  ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 6;
  shape.noise = 0.1;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 3, 5), Blocking(80)));
  const CostedPipeline& pipeline = planner.pipeline();
  for (int round = 0; round < 2000; ++round) {
    std::vector<CostOption> options;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const auto& all = pipeline.TableOf(i).all_options;
      options.push_back(all[random() % (round % 2 == 0 ? all.size() : 2)]);
    }
    const double seconds = IterationSeconds(pipeline, options);
    EXPECT_GE(seconds, planner.frontier().fastest_seconds);
    const double bound = planner.frontier().EnergyAt(seconds);
    EXPECT_GE(plan::IterationEnergy(pipeline, options, seconds), bound * (1 - 1e-12));
  }
}

TEST(PlannerTest, ConstraintsAreObeyedAndCost) {
  std::mt19937 random(24);
  ProfileShape shape;
  shape.stages = 4;
  shape.clocks = 10;
  shape.noise = 0.02;
  shape.spread = 0.01;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 4, 8), Blocking(70)));
  const CostedPipeline& pipeline = planner.pipeline();
  const double seconds = 1.05 * planner.baseline().iteration_time_seconds;
  const auto free = planner.PlanFor(seconds, {.effort = 0.05});
  ASSERT_TRUE(free);
  const auto plan_with = [&](const PlanConstraints& constraints) {
    EXPECT_TRUE(constraints.any());
    auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = 0.05});
    EXPECT_TRUE(plan) << plan.error().message;
    CheckHonest(planner, *plan);
    EXPECT_GE(EffectiveEnergy(pipeline, plan->options),
              EffectiveEnergy(pipeline, free->options) * (1 - 1e-3));
    return *std::move(plan);
  };

  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  for (const Granularity granularity :
       {Granularity::kPhase, Granularity::kStageType, Granularity::kStage}) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const Plan plan = plan_with(constraints);
    std::map<std::string, std::set<int>> knobs;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const Computation& c = pipeline.dag.computations[i];
      std::string key = std::to_string(c.rank);
      if (granularity != Granularity::kStage) key += ComputationTypeLetter(c.id.type);
      if (granularity == Granularity::kPhase) key += std::to_string(static_cast<int>(phases[i]));
      knobs[key].insert(plan.options[i].knob);
    }
    for (const auto& [key, used] : knobs) EXPECT_EQ(used.size(), 1U) << key;
  }

  for (const auto& [sigmas, fraction] : {std::pair{3.0, 0.0}, {0.0, 0.04}, {3.0, 0.04}}) {
    PlanConstraints constraints;
    constraints.time_margin_sigmas = sigmas;
    constraints.time_margin_fraction = fraction;
    const Plan plan = plan_with(constraints);
    EXPECT_LE(IterationSeconds(pipeline, plan.options, {sigmas, fraction}), seconds);
    EXPECT_LT(plan.iteration_time_seconds, seconds);
  }
}

TEST(PlannerTest, AMarginLeavesAllMaximumClocksPossible) {
  std::mt19937 random(25);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  PlanConstraints constraints;
  constraints.time_margin_fraction = 0.5;
  const auto plan = planner.PlanFor(planner.baseline().iteration_time_seconds,
                                    {.constraints = constraints, .effort = kLittle});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_LE(IterationSeconds(planner.pipeline(), plan->options, {0, 0.5}),
            plan->requested_time_seconds);
}

TEST(PlannerTest, SaysWhatIsInfeasible) {
  std::mt19937 random(26);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double fastest = planner.frontier().fastest_seconds;
  for (const double seconds : {0.0, -1.0, 0.999999 * fastest}) {
    const auto plan = planner.PlanFor(seconds);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(plan.error().message, Mentions("'fastest'"));
    const auto target = planner.TargetSeconds({PlanTarget::Kind::kSeconds, seconds});
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().message, plan.error().message);
  }
  // As it was asked for, where six digits would be those of what is possible.
  const double close = (1 - 1e-9) * fastest;
  EXPECT_THAT(planner.PlanFor(close).error().message, Mentions(fmt::format("{}", close)));
  const auto factor = planner.TargetSeconds({PlanTarget::Kind::kBaselineFactor, 0.5});
  ASSERT_FALSE(factor);
  EXPECT_EQ(factor.error().code, ErrorCode::kInfeasible);
}

TEST(PlannerTest, RefusesWhatWouldNeverEnd) {
  std::mt19937 random(39);
  CostedPipeline pipeline = Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70));
  pipeline.dag.computations.resize(1'000'001);
  const auto planner = Planner::Create(std::move(pipeline), {});
  ASSERT_FALSE(planner);
  EXPECT_EQ(planner.error().code, ErrorCode::kOverflow);
  EXPECT_THAT(planner.error().message, Mentions("1000001"));
}

TEST(PlannerTest, SaysWhatTheFrontierIsExpectedToTake) {
  std::mt19937 random(40);
  int told = 0;
  PlannerOptions options;
  options.progress = [&told](const Progress& now) {
    EXPECT_EQ(now.estimate != nullptr, told == 0);  // Once, before all else.
    if (now.estimate != nullptr) {
      EXPECT_GT(now.estimate->breakpoints, 1);
    }
    ++told;
    return true;
  };
  EXPECT_TRUE(
      Planner::Create(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)), options));
  EXPECT_GT(told, 1);
}

TEST(PlannerTest, RefusesConstraintsThatMeanNothing) {
  std::mt19937 random(32);
  ProfileShape shape;
  shape.stages = 2;
  shape.clocks = 4;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 2, 3), Blocking(70)));
  const double seconds = planner.frontier().tstar_seconds;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [&](const PlanConstraints& constraints, double effort) {
    const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = effort});
    return !plan && plan.error().code == ErrorCode::kInvalidInput;
  };
  EXPECT_TRUE(refused({.time_margin_sigmas = -1}, 1));
  EXPECT_TRUE(refused({.time_margin_fraction = -0.5}, 1));
  EXPECT_TRUE(refused({}, 0));
  EXPECT_TRUE(refused({}, nan));
  EXPECT_TRUE(refused({}, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(planner.PlanFor(seconds, {.effort = 1e30}));
}

TEST(PlannerTest, WhatTheInfeasibleErrorAdvisesWorks) {
  std::mt19937 random(33);
  ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 5;
  for (int round = 0; round < 20; ++round) {
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 3, 4), Blocking(70)));
    const auto none = planner.TargetSeconds({PlanTarget::Kind::kSeconds, 1e-9});
    ASSERT_FALSE(none);
    const std::string& message = none.error().message;
    const std::string before = "iteration takes ";
    const double advised = std::stod(message.substr(message.find(before) + before.size()));
    EXPECT_TRUE(planner.TargetSeconds({PlanTarget::Kind::kSeconds, advised})) << message;
  }
}

}  // namespace
}  // namespace perseus
