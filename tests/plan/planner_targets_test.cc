// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What targets mean, and what happens at the ends of the frontier and of the numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

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
using plan_testing::LeastEffectiveEnergy;
using plan_testing::Plans;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using plan_testing::Singles;

TEST(PlannerTest, TargetsMeanPointsOfTheFrontier) {
  std::mt19937 random(27);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const Frontier& frontier = planner.frontier();
  using Kind = PlanTarget::Kind;
  EXPECT_EQ(*planner.TargetSeconds({Kind::kFastest, 0}), frontier.fastest_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kMinEnergy, 0}), frontier.min_energy_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kTStar, 0}), frontier.tstar_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kSeconds, 99}), 99);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kBaselineFactor, 1.5}),
            1.5 * planner.baseline().iteration_time_seconds);

  EXPECT_EQ(frontier.points.front().iteration_time_seconds, frontier.fastest_seconds);
  EXPECT_EQ(frontier.points.back().iteration_time_seconds, frontier.tstar_seconds);
  EXPECT_EQ(frontier.points.back().slope_watts, 0);
  EXPECT_EQ(frontier.certified_error, 0);
  const double watts = planner.pipeline().total_blocking_power_watts;
  const auto min_energy = std::min_element(
      frontier.points.begin(), frontier.points.end(),
      [](const auto& a, const auto& b) { return a.energy_joules < b.energy_joules; });
  EXPECT_EQ(frontier.min_energy_seconds, min_energy->iteration_time_seconds);
  for (std::size_t k = 0; k + 1 < frontier.points.size(); ++k) {
    const auto& a = frontier.points[k];
    const auto& b = frontier.points[k + 1];
    const double seconds = b.iteration_time_seconds - a.iteration_time_seconds;
    EXPECT_GT(seconds, 0);
    EXPECT_GT(a.slope_watts, b.slope_watts);
    EXPECT_NEAR((b.energy_joules - a.energy_joules) / seconds, watts - a.slope_watts,
                1e-6 * a.slope_watts);
    const double middle = a.iteration_time_seconds + seconds / 2;
    EXPECT_NEAR(frontier.EnergyAt(middle), (a.energy_joules + b.energy_joules) / 2,
                1e-9 * a.energy_joules);
  }
  EXPECT_NEAR(frontier.EnergyAt(frontier.tstar_seconds + 2),
              frontier.points.back().energy_joules + 2 * watts, 1e-9);
}

TEST(PlannerTest, BeyondTStarThePlanIsTheOneForTStar) {
  std::mt19937 random(28);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double tstar = planner.frontier().tstar_seconds;
  const auto at = planner.PlanFor(tstar, {.effort = kLittle});
  const auto beyond = planner.PlanFor(3 * tstar, {.effort = kLittle});
  ASSERT_TRUE(at && beyond);
  EXPECT_EQ(at->energy_joules, beyond->energy_joules);
  EXPECT_EQ(at->iteration_time_seconds, tstar);
  EXPECT_NEAR(at->gap_percent, 0, 1e-9);
  EXPECT_EQ(beyond->requested_time_seconds, 3 * tstar);
}

TEST(PlannerTest, AnyAmountOfTimeIsEnough) {
  std::mt19937 random(32);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double tstar = planner.frontier().tstar_seconds;
  for (const Granularity granularity : {Granularity::kComputation, Granularity::kStage}) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const auto twice = planner.PlanFor(2 * tstar, {.constraints = constraints, .effort = kLittle});
    ASSERT_TRUE(twice);
    for (const double seconds : {40 * tstar, 1e6 * tstar, 1e300}) {
      const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = kLittle});
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->energy_joules, twice->energy_joules) << seconds;
    }
  }
  // plan.json states the time that was asked for, and has neither of these.
  for (const double none :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto never = planner.PlanFor(none);
    ASSERT_FALSE(never);
    EXPECT_EQ(never.error().code, ErrorCode::kInvalidInput);
  }
}

TEST(PlannerTest, SharedKnobsMayNeedMoreThanTStar) {
  // T* is 2 s, each at its own best knob; at one knob for both it takes 3 s.
  const Planner planner =
      Plans(Costed("0,forward,a,1,10\n0,forward,b,2,30\n0,backward,a,2,30\n0,backward,b,1,10\n",
                   DagOf("1f1b", 1, 1), Blocking(0)));
  EXPECT_EQ(planner.frontier().tstar_seconds, 2);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  EXPECT_FALSE(planner.PlanFor(2.9, {.constraints = constraints, .effort = kLittle}));
  for (const double seconds : {3.0, 100.0}) {
    const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = kLittle});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->iteration_time_seconds, 3);
    EXPECT_EQ(plan->energy_joules, 40);
  }
}

TEST(PlannerTest, DominatedOptionsMayBeAbsurd) {
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  for (const char* dominated : {"2,8200", "2,1e12", "1e9,31", "1e9,1e12"}) {
    const Planner planner = Plans(
        Costed(std::string("0,forward,a,1,10\n0,forward,b,1,10\n0,backward,a,2,30\n0,backward,b,") +
                   dominated + "\n",
               DagOf("1f1b", 1, 2), Blocking(0)));
    for (const double seconds : {6.0, 7.0, 1e12}) {
      const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = kLittle});
      ASSERT_TRUE(plan) << dominated << ": " << plan.error().message;
      EXPECT_EQ(plan->energy_joules, 80) << dominated;
    }
  }
}

TEST(PlannerTest, NothingToChoose) {
  const Planner planner = Plans(
      Costed("0,forward,1400,1,100\n0,backward,1400,2,200\n", DagOf("1f1b", 1, 1), Blocking(50)));
  EXPECT_EQ(planner.frontier().points.size(), 1U);
  EXPECT_EQ(planner.frontier().fastest_seconds, 3);
  EXPECT_EQ(planner.frontier().tstar_seconds, 3);
  const auto plan = planner.PlanFor(3);
  ASSERT_TRUE(plan);
  CheckHonest(planner, *plan);
  EXPECT_EQ(plan->energy_joules, 300);
  EXPECT_EQ(plan->saving_percent, 0);
  EXPECT_EQ(plan->gap_percent, 0);
}

TEST(PlannerTest, EqualTimesZeroEnergiesAndTinyOrLargeUnits) {
  for (const auto& rows :
       {"0,forward,2000,1,100\n0,forward,1000,1,90\n0,backward,2000,2,5\n0,backward,1000,2,5\n",
        "0,forward,2000,1,0\n0,forward,1000,2,0\n0,backward,2000,2,0\n0,backward,1000,3,0\n",
        "0,forward,2000,1e-6,2e-6\n0,forward,1000,2e-6,1e-6\n0,backward,2000,1e-6,3e-6\n"
        "0,backward,1000,3e-6,1e-6\n",
        "0,forward,2000,500,2e6\n0,forward,1000,1000,1e6\n0,backward,2000,700,3e6\n"
        "0,backward,1000,900,1e6\n"}) {
    const Planner planner = Plans(Costed(rows, DagOf("1f1b", 1, 3), Blocking(0)));
    const Frontier& frontier = planner.frontier();
    for (const double share : {0.0, 0.4, 1.0}) {
      const double seconds =
          frontier.fastest_seconds + share * (frontier.tstar_seconds - frontier.fastest_seconds);
      const auto plan = planner.PlanFor(seconds);
      ASSERT_TRUE(plan) << rows << plan.error().message;
      EXPECT_LE(plan->iteration_time_seconds, seconds);
      EXPECT_NEAR(EffectiveEnergy(planner.pipeline(), plan->options),
                  LeastEffectiveEnergy(planner.pipeline(), Singles(planner.pipeline()), seconds),
                  1e-9 * plan->energy_joules);
    }
  }
}

TEST(PlannerTest, TheCoarseModeIsCertified) {
  std::mt19937 random(30);
  ProfileShape shape;
  shape.stages = 4;
  shape.clocks = 12;
  const CostedPipeline pipeline =
      Costed(RandomRows(random, shape), DagOf("1f1b", 4, 10), Blocking(70));
  const Planner exact = Plans(pipeline);
  PlannerOptions options;
  options.slope_quantum_watts = 10;
  const Planner coarse = Plans(pipeline, options);
  EXPECT_EQ(exact.frontier().slope_quantum_watts, 0);
  EXPECT_EQ(coarse.frontier().slope_quantum_watts, 10);
  EXPECT_GT(coarse.frontier().certified_error, 0);
  EXPECT_LT(coarse.frontier().certified_error, 0.01);
  EXPECT_LT(coarse.frontier().points.size(), exact.frontier().points.size());
  EXPECT_EQ(coarse.frontier().fastest_seconds, exact.frontier().fastest_seconds);
  const double first = exact.frontier().fastest_seconds;
  for (int k = 0; k <= 40; ++k) {
    const double seconds = first + (exact.frontier().tstar_seconds - first) * k / 40;
    const double truth = exact.frontier().EnergyAt(seconds);
    EXPECT_NEAR(coarse.frontier().EnergyAt(seconds) / truth, 1,
                coarse.frontier().certified_error * (1 + 1e-9));
  }
  const auto plan = coarse.PlanFor(coarse.baseline().iteration_time_seconds, {.effort = kLittle});
  ASSERT_TRUE(plan);
  CheckHonest(coarse, *plan);
  EXPECT_LE(plan->lower_bound_joules, exact.frontier().EnergyAt(plan->iteration_time_seconds));
}

}  // namespace
}  // namespace perseus
