// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "perseus/policy.h"
#include "plan/named_times.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using testing::ElementsAre;
using testing::HasSubstr;

// Stage 1 is the heavier one.
const std::string kRows =
    "0,forward,1000,1,300\n0,forward,750,1.4,240\n0,forward,500,2,200\n"
    "0,backward,1000,2,600\n0,backward,750,2.8,480\n0,backward,500,4,400\n"
    "1,forward,1000,1.5,450\n1,forward,750,2,380\n1,forward,500,3,300\n"
    "1,backward,1000,3,900\n1,backward,750,4,760\n1,backward,500,6,600\n";

Planner PlannerOf(CostedPipeline pipeline) {
  auto planner = Planner::Create(std::move(pipeline), {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

// F0 F1 B1 B0 one after the other: 7.5 s at maximum clocks.
Planner TwoStages() { return PlannerOf(Costed(kRows, DagOf("1f1b", 2, 1), Blocking(10))); }

std::unique_ptr<Policy> PolicyOf(const std::string& name, const Planner& planner) {
  PolicySpec spec;
  spec.name = name;
  auto policy = MakePolicy(spec, planner);
  EXPECT_TRUE(policy) << policy.error().message;
  return *std::move(policy);
}

// Clocks of the computations in the order in which they run.
std::vector<std::string> Clocks(const Planner& planner, const Plan& plan) {
  std::vector<std::string> clocks;
  for (const CostOption& option : plan.options) {
    clocks.push_back(planner.pipeline().knobs[option.knob].label);
  }
  return clocks;
}

TEST(Policies, HaveNamesAndSummaries) {
  EXPECT_THAT(PolicyNames(), ElementsAre("max-clocks", "zeus-global", "zeus-per-stage", "envpipe",
                                         "power-cap", "perseus"));
  const Planner planner = TwoStages();
  std::set<std::string_view> summaries;
  for (const std::string_view name : PolicyNames()) {
    summaries.insert(PolicySummary(name));
    const auto policy = PolicyOf(std::string(name), planner);
    EXPECT_EQ(policy->name(), name);
    EXPECT_EQ(policy->reacts(), name == "perseus");
  }
  EXPECT_EQ(summaries.size(), PolicyNames().size());
  EXPECT_EQ(summaries.count(""), 0);
  EXPECT_EQ(PolicySummary("max"), "");
}

TEST(Policies, RefusesUnknownNames) {
  PolicySpec spec;
  spec.name = "zeus-globl";
  const auto policy = MakePolicy(spec, TwoStages());
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(policy.error().message,
            "there is no policy 'zeus-globl'; did you mean 'zeus-global'?; expected one of "
            "max-clocks, zeus-global, zeus-per-stage, envpipe, power-cap, perseus");
}

TEST(Policies, OnlyPerseusKnowsConstraints) {
  const Planner planner = TwoStages();
  for (const std::string_view name : PolicyNames()) {
    PolicySpec spec;
    spec.name = name;
    spec.constraints.granularity = Granularity::kStage;
    const auto policy = MakePolicy(spec, planner);
    if (name == "perseus") {
      ASSERT_TRUE(policy) << policy.error().message;
      const auto plan = (*policy)->PlanFor(8);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->knob_changes, 0);
      EXPECT_GT(PolicyOf("perseus", planner)->PlanFor(8)->knob_changes, 0);
    } else {
      ASSERT_FALSE(policy);
      EXPECT_THAT(policy.error().message, Mentions(spec.name, "constraints"));
    }
  }
}

TEST(Policies, MaxClocksIsTheBaselineForAnyTime) {
  const Planner planner = TwoStages();
  const auto policy = PolicyOf("max-clocks", planner);
  for (const double seconds : {1.0, 7.5, 100.0}) {
    const auto plan = policy->PlanFor(seconds);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->iteration_time_seconds, 7.5);
    EXPECT_EQ(plan->energy_joules, planner.baseline().energy_joules);
    EXPECT_EQ(plan->saving_percent, 0);
  }
}

TEST(Policies, ZeusGlobalTakesTheBestClockThatEndsInTime) {
  const Planner planner = TwoStages();
  const auto policy = PolicyOf("zeus-global", planner);
  // 1000: 7.5 s. 750: 1.4 + 2 + 4 + 2.8 = 10.2 s. 500: 15 s.
  EXPECT_THAT(Clocks(planner, *policy->PlanFor(7.5)), ElementsAre("1000", "1000", "1000", "1000"));
  EXPECT_THAT(Clocks(planner, *policy->PlanFor(14.9)), ElementsAre("750", "750", "750", "750"));
  const auto plan = policy->PlanFor(15);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(Clocks(planner, *plan), ElementsAre("500", "500", "500", "500"));
  EXPECT_EQ(plan->iteration_time_seconds, 15);
  // 200 + 300 + 600 + 400, and each rank waits while the other works.
  EXPECT_DOUBLE_EQ(plan->energy_joules, 1500 + 10 * 15);
  EXPECT_EQ(plan->requested_time_seconds, 15);
}

TEST(Policies, FamiliesSayWhatTheirFastestIs) {
  const Planner planner = TwoStages();
  const auto plan = PolicyOf("zeus-global", planner)->PlanFor(7);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(plan.error().message,
            "the policy zeus-global has no plan that takes 7 s: its fastest takes 7.5 s (1x of the "
            "all-maximum-clock time); ask for at least that");
  // Balancing slows stage 0 down also at maximum clocks: 1.4 + 1.5 + 3 + 2.8 s.
  const auto late = PolicyOf("zeus-per-stage", planner)->PlanFor(8);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, Mentions("8.7"));
}

// 0.1 + 0.2 is more than 0.3, which is what a user writes.
TEST(Policies, ATimeThatMissesTheFastestByItsLastBitsIsEnough) {
  const std::string rows = "0,forward,1000,0.1,10\n0,backward,1000,0.2,20\n0,backward,900,0.1,40\n";
  const Planner planner = PlannerOf(Costed(rows, DagOf("1f1b", 1, 1), Blocking(10)));
  const auto policy = PolicyOf("zeus-global", planner);
  const auto plan = policy->PlanFor(0.3);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->requested_time_seconds, plan->iteration_time_seconds);
  const auto none = policy->PlanFor(0.29999999);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, Mentions("0.29999999", "0.3"));
}

TEST(Policies, LeastEffectiveEnergyCountsAndNotLeastEnergy) {
  // At 500 MHz an iteration takes 12 s and 1,500 J, at 1000 MHz 6 s and
  // 1,440 J. But a rank that waits draws 100 W, and the iteration lasts 12 s.
  const Planner planner =
      PlannerOf(Costed("0,forward,1000,2,480\n0,forward,500,4,500\n0,backward,1000,4,960\n"
                       "0,backward,500,8,1000\n",
                       DagOf("1f1b", 1, 1), Blocking(100)));
  const auto plan = PolicyOf("zeus-global", planner)->PlanFor(12);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(Clocks(planner, *plan), ElementsAre("500", "500"));
}

TEST(Policies, EveryComputationCounts) {
  // At 500 MHz stage 0 takes 150 J more a microbatch and stage 1 takes 200 J
  // less, though stage 0 has more kinds of computation.
  const auto schedule =
      ParseSchedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "fused.csv");
  ASSERT_TRUE(schedule) << schedule.error().message;
  const auto dag = BuildDag(*schedule, {});
  ASSERT_TRUE(dag) << dag.error().message;
  const Planner planner = PlannerOf(Costed(
      "0,forward,1000,1,300\n0,forward,500,2,400\n0,backward,1000,2,600\n0,backward,500,4,650\n"
      "1,forward,1000,1,600\n1,forward,500,2,500\n1,backward,1000,2,600\n1,backward,500,4,500\n",
      *dag, Blocking(0)));
  const auto plan = PolicyOf("zeus-global", planner)->PlanFor(100);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_DOUBLE_EQ(plan->energy_joules, 2 * (400 + 650 + 500 + 500));
}

TEST(Policies, ZeusNeedsAKnobThatAllHave) {
  const Planner planner = PlannerOf(
      Costed("0,forward,a,1,300\n0,backward,b,2,500\n", DagOf("1f1b", 1, 1), Blocking(10)));
  for (const std::string name : {"zeus-global", "zeus-per-stage"}) {
    PolicySpec spec;
    spec.name = name;
    const auto policy = MakePolicy(spec, planner);
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(policy.error().message, Mentions("knob", "every"));
  }
}

TEST(Policies, PerseusPlansForTheTimeItIsAskedFor) {
  const Planner planner = TwoStages();
  const auto policy = PolicyOf("perseus", planner);
  EXPECT_FALSE(policy->PlanFor(7));
  const auto fast = policy->PlanFor(7.5);
  ASSERT_TRUE(fast) << fast.error().message;
  EXPECT_EQ(fast->iteration_time_seconds, 7.5);
  const auto slow = policy->PlanFor(1000);
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_EQ(slow->iteration_time_seconds, 15);
}

// Whichever straggler the others wait for: of all plans that end by then, found
// by trying every clock of every computation, the best. The longest wait is
// beyond T*, where slower clocks save nothing more.
TEST(Policies, AtEverySlowdownPerseusTakesTheBestOfAllPlans) {
  std::mt19937 random(11);
  for (const auto& [stages, microbatches, clocks] :
       {std::tuple(2, 2, 4), std::tuple(3, 1, 5), std::tuple(1, 3, 6)}) {
    ProfileShape shape;
    shape.stages = stages;
    shape.clocks = clocks;
    shape.noise = 0.02;
    const Planner planner = PlannerOf(
        Costed(RandomRows(random, shape), DagOf("1f1b", stages, microbatches), Blocking(60)));
    const CostedPipeline& pipeline = planner.pipeline();
    const auto policy = PolicyOf("perseus", planner);
    const double target = planner.baseline().iteration_time_seconds;
    bool beyond_tstar = false;
    for (const int percent : {0, 1, 2, 5, 8, 10, 15, 20, 30, 40, 50, 200}) {
      SCOPED_TRACE(testing::Message() << stages << " stages, slower by " << percent << " %");
      const double seconds = target * (100 + percent) / 100.0;
      beyond_tstar = beyond_tstar || seconds > planner.frontier().tstar_seconds;
      const auto plan = policy->PlanFor(seconds);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_LE(plan->iteration_time_seconds, seconds);
      const double least =
          plan_testing::LeastEffectiveEnergy(pipeline, plan_testing::Singles(pipeline), seconds);
      EXPECT_NEAR(EffectiveEnergy(pipeline, plan->options), least, 1e-9 * std::abs(least));
    }
    EXPECT_TRUE(beyond_tstar);
  }
}

struct Shape {
  std::string schedule;
  int stages = 2;
  int microbatches = 2;
  int virtual_stages = 1;
};

TEST(Policies, NoneIsLateAndNoneBeatsPerseus) {
  std::mt19937 random(7);
  const std::vector<Shape> shapes = {{"1f1b", 2, 3},
                                     {"1f1b", 4, 6},
                                     {"gpipe", 3, 3},
                                     {"interleaved-1f1b", 4, 4, 2},
                                     {"interleaved-zero-bubble", 3, 6},
                                     {"dualpipev", 4, 8, 2}};
  int compared = 0;
  for (const Shape& shape : shapes) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      ProfileShape profile;
      profile.stages = shape.stages;
      profile.clocks = 5;
      profile.noise = repeat == 1 ? 0.03 : 0;
      profile.labels = repeat == 2;
      const Planner planner = PlannerOf(
          Costed(RandomRows(random, profile),
                 DagOf(shape.schedule, shape.stages, shape.microbatches, {}, shape.virtual_stages),
                 Blocking(60)));
      const CostedPipeline& pipeline = planner.pipeline();
      const auto ours = PolicyOf("perseus", planner);
      for (const double factor : {1.0, 1.2}) {
        const double seconds = factor * planner.baseline().iteration_time_seconds;
        const auto plan = ours->PlanFor(seconds);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_LE(plan->iteration_time_seconds, seconds);
        const double our_joules = EffectiveEnergy(pipeline, plan->options);
        for (const std::string_view name : PolicyNames()) {
          if (name == "perseus") continue;
          const auto theirs = PolicyOf(std::string(name), planner)->PlanFor(seconds);
          if (!theirs) {
            EXPECT_EQ(theirs.error().code, ErrorCode::kInfeasible);
            continue;
          }
          EXPECT_LE(theirs->iteration_time_seconds, seconds * (1 + 1e-9)) << name;
          // What they cost in an iteration that lasts so long anyway.
          const double waiting = pipeline.total_blocking_power_watts * seconds;
          EXPECT_LE(our_joules + waiting,
                    (EffectiveEnergy(pipeline, theirs->options) + waiting) * (1 + 1e-9))
              << name << " " << shape.schedule << " " << factor;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 120);
}

}  // namespace
}  // namespace perseus
