// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "perseus/analysis.h"
#include "plan/cost_options.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::IterationSeconds;
using plan_testing::RandomRows;
using testing::HasSubstr;

constexpr double kLittle = 0.01;  // Effort.
constexpr double kBlockingWatts = 70;

Planner RandomPlanner(unsigned seed, int stages, int microbatches, double noise = 0) {
  std::mt19937 random(seed);
  auto planner =
      Planner::Create(Costed(RandomRows(random, {.stages = stages, .clocks = 6, .noise = noise}),
                             DagOf("1f1b", stages, microbatches), Blocking(kBlockingWatts)),
                      {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

double BoundWatts(const Planner& planner, double seconds) {
  return planner.lower_bound().EnergyAt(seconds) / seconds;
}

// Energy of the options as replayed, and of the wait that follows.
double EnergyOver(const Planner& planner, const Plan& plan) {
  return plan::IterationEnergy(planner.pipeline(), plan.options, plan.iteration_time_seconds);
}

TEST(FastestWithinPowerTest, KeepsToTheBudgetAndNothingFasterCould) {
  int waits = 0;
  int plans = 0;
  for (unsigned seed = 71; seed < 79; ++seed) {
    const Planner planner = RandomPlanner(seed, 3, 4, seed % 2 == 0 ? 0.05 : 0);
    const Frontier& bound = planner.lower_bound();
    const double most = BoundWatts(planner, bound.fastest_seconds);
    const double least = planner.pipeline().total_blocking_power_watts;
    for (const double share : {0.03, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.2}) {
      const double watts = least + share * (most - least);
      const auto plan = FastestWithinPower(planner, watts, {.effort = kLittle});
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_LE(plan->average_power_watts, watts);
      EXPECT_NEAR(plan->average_power_watts * plan->iteration_time_seconds, plan->energy_joules,
                  1e-9 * plan->energy_joules);
      EXPECT_NEAR(plan->energy_joules, EnergyOver(planner, *plan), 1e-9 * plan->energy_joules);
      EXPECT_GE(plan->gap_percent, -1e-9);
      EXPECT_LE(plan->iteration_time_seconds, plan->requested_time_seconds);
      const double replayed = IterationSeconds(planner.pipeline(), plan->options);
      if (plan->iteration_time_seconds > replayed) {
        EXPECT_GT(BoundWatts(planner, bound.tstar_seconds) * 1.02, watts);
        ++waits;
      } else {
        ++plans;
      }
      // Every time before is too dear even for the bound, up to the plan's gap.
      const double first = bound.fastest_seconds;
      const double near = plan->iteration_time_seconds / (1 + 0.03);
      for (int k = 0; k < 500; ++k) {
        const double seconds = first + (near - first) * k / 500;
        if (seconds >= near) break;
        EXPECT_GT(BoundWatts(planner, seconds), watts) << seconds;
      }
    }
  }
  EXPECT_GT(waits, 8);
  EXPECT_GT(plans, 8);
}

TEST(FastestWithinPowerTest, AGenerousBudgetIsTheFastestPlan) {
  const Planner planner = RandomPlanner(80, 3, 4);
  const auto plan = FastestWithinPower(planner, 1e6, {.effort = kLittle});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->requested_time_seconds, planner.frontier().fastest_seconds);
}

TEST(FastestWithinPowerTest, FindsTheTimeBetweenTwoPoints) {
  // 30 computations of 1 s and 300 J, or 2 s and 200 J: with the first 20 fast
  // they take 40 s and 8,000 J.
  const auto planner =
      Planner::Create(Costed("0,forward,1400,1,300\n0,forward,700,2,200\n0,backward,1400,1,300\n"
                             "0,backward,700,2,200\n",
                             DagOf("1f1b", 1, 15), Blocking(0)),
                      {});
  ASSERT_TRUE(planner);
  const auto plan = FastestWithinPower(*planner, 200, {.effort = kLittle});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_DOUBLE_EQ(plan->iteration_time_seconds, 40);
  EXPECT_DOUBLE_EQ(plan->energy_joules, 8000);
}

TEST(FastestWithinPowerTest, ConstrainedPlansKeepToTheBudgetToo) {
  const Planner planner = RandomPlanner(81, 4, 6);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  const double blocking = planner.pipeline().total_blocking_power_watts;
  const double most = planner.baseline().average_power_watts;
  for (const double share : {0.4, 0.7, 0.85}) {
    const double watts = blocking + share * (most - blocking);
    const auto plan =
        FastestWithinPower(planner, watts, {.constraints = constraints, .effort = kLittle});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_LE(plan->average_power_watts, watts);
    EXPECT_GE(plan->average_power_watts, 0.9 * watts);
    EXPECT_LE(plan->distinct_knobs, 4);
    const auto free = FastestWithinPower(planner, watts, {.effort = kLittle});
    ASSERT_TRUE(free);
    EXPECT_GE(plan->iteration_time_seconds, 0.999 * free->iteration_time_seconds);
  }
}

// One knob for F and B: both fast (2 s, 130 J beyond waiting), or both slow (4 s, 80
// J), although B would rather be fast: T* is 3 s.
TEST(FastestWithinPowerTest, SharedKnobsMayBeSlowerThanTStarToSaveAWait) {
  const auto planner = Planner::Create(
      Costed(
          "0,forward,1000,1,100\n0,forward,500,2,40\n0,backward,1000,1,50\n0,backward,500,2,80\n",
          DagOf("1f1b", 1, 1), Blocking(10)),
      {});
  ASSERT_TRUE(planner);
  EXPECT_DOUBLE_EQ(planner->frontier().tstar_seconds, 3);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  const auto slow =
      FastestWithinPower(*planner, 30.1, {.constraints = constraints, .effort = kLittle});
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_DOUBLE_EQ(slow->iteration_time_seconds, 4);
  EXPECT_DOUBLE_EQ(slow->energy_joules, 120);
  // Where even that takes a wait it is still the shorter one.
  const auto waits =
      FastestWithinPower(*planner, 20, {.constraints = constraints, .effort = kLittle});
  ASSERT_TRUE(waits);
  EXPECT_DOUBLE_EQ(waits->iteration_time_seconds, 8);
  // Fast and a wait of half a second.
  const auto fast =
      FastestWithinPower(*planner, 62, {.constraints = constraints, .effort = kLittle});
  ASSERT_TRUE(fast);
  EXPECT_DOUBLE_EQ(fast->iteration_time_seconds, 2.5);
}

TEST(FastestWithinPowerTest, SaysTheLeastThatIsPossible) {
  const Planner planner = RandomPlanner(82, 3, 4);
  for (const double watts : {3 * kBlockingWatts, 100.0, 1e-3}) {
    const auto plan = FastestWithinPower(planner, watts, {.effort = kLittle});
    ASSERT_FALSE(plan) << watts;
    EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(plan.error().message, Mentions("210"));
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double watts : {0.0, -5.0, nan, std::numeric_limits<double>::infinity()}) {
    const auto plan = FastestWithinPower(planner, watts, {.effort = kLittle});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_TRUE(FastestWithinPower(planner, 211, {.effort = kLittle}));
}

TEST(FastestWithinPowerTest, ComputingMayDrawLessThanWaiting) {
  // Blocking power far above what computing draws: waiting never helps.
  const auto planner =
      Planner::Create(Costed("0,forward,1400,1,20\n0,forward,700,2,10\n0,backward,1400,2,40\n"
                             "0,backward,700,4,20\n",
                             DagOf("1f1b", 1, 2), Blocking(500)),
                      {});
  ASSERT_TRUE(planner);
  const auto frugal = FastestWithinPower(*planner, 5.5, {.effort = kLittle});
  ASSERT_TRUE(frugal) << frugal.error().message;
  EXPECT_LE(frugal->average_power_watts, 5.5);
  const auto none = FastestWithinPower(*planner, 4, {.effort = kLittle});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, Mentions("5", "W"));
}

TEST(CheapestWithinTest, IsNeverSlowerThanEconomicNorDearerThanTheBaseline) {
  for (unsigned seed = 91; seed < 97; ++seed) {
    const Planner planner = RandomPlanner(seed, 3, 4, seed % 2 == 0 ? 0.08 : 0);
    const double baseline_seconds = planner.baseline().iteration_time_seconds;
    const double economic = planner.frontier().economic_seconds;
    double before = std::numeric_limits<double>::infinity();
    for (const double factor : {1.0, 1.01, 1.05, 1.1, 1.2, 1.5, 10.0}) {
      const double seconds = factor * baseline_seconds;
      const auto plan = CheapestWithin(planner, seconds, {.effort = kLittle});
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->requested_time_seconds, seconds);
      EXPECT_LE(plan->iteration_time_seconds, seconds);
      EXPECT_LE(plan->iteration_time_seconds, std::max(economic, baseline_seconds));
      EXPECT_LE(plan->energy_joules, planner.baseline().energy_joules);
      EXPECT_LE(plan->energy_joules, before * 1.005);  // Up to the gap.
      before = plan->energy_joules;
    }
    const auto late = planner.PlanFor(economic, {.effort = kLittle});
    ASSERT_TRUE(late);
    EXPECT_EQ(before, late->energy_joules);
  }
}

// Of few options the best plan for T_economic may cost more than the baseline,
// though the bound never does.
TEST(CheapestWithinTest, TheBaselineIsAPlanToo) {
  std::mt19937 random(846);
  const auto planner =
      Planner::Create(Costed(RandomRows(random, {.stages = 2, .clocks = 2, .noise = 0.1}),
                             DagOf("1f1b", 2, 1), Blocking(240)),
                      {});
  ASSERT_TRUE(planner);
  const Plan& baseline = planner->baseline();
  const auto economic = planner->PlanFor(planner->frontier().economic_seconds);
  ASSERT_TRUE(economic);
  ASSERT_GT(economic->energy_joules, baseline.energy_joules);
  const auto plan = CheapestWithin(*planner, 2 * baseline.iteration_time_seconds);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->energy_joules, baseline.energy_joules);
  EXPECT_EQ(plan->requested_time_seconds, 2 * baseline.iteration_time_seconds);
}

// F must go fast and B slow to be as fast as T_economic, which one knob for both
// cannot: it takes 4 s (500 MHz) or 4.2 s (1000 MHz, the baseline).
TEST(CheapestWithinTest, ConstraintsMayLeaveNoPlanAsFastAsEconomic) {
  const auto planner =
      Planner::Create(Costed("0,forward,1000,1,10\n0,forward,500,3,50\n0,backward,1000,3.2,50\n"
                             "0,backward,500,1,10\n",
                             DagOf("1f1b", 1, 1), Blocking(1)),
                      {});
  ASSERT_TRUE(planner);
  ASSERT_DOUBLE_EQ(planner->frontier().economic_seconds, 2);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  ASSERT_FALSE(planner->PlanFor(2, {.constraints = constraints}));
  const auto plan = CheapestWithin(*planner, 4.1, {.constraints = constraints});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_DOUBLE_EQ(plan->iteration_time_seconds, 4);
  EXPECT_EQ(plan->requested_time_seconds, 4.1);
  EXPECT_EQ(CheapestWithin(*planner, 3.9, {.constraints = constraints}).error().code,
            ErrorCode::kInfeasible);
}

TEST(CheapestWithinTest, NoPlanIsFasterThanTheFastest) {
  const Planner planner = RandomPlanner(98, 2, 3);
  const auto plan = CheapestWithin(planner, 0.99 * planner.frontier().fastest_seconds);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
  EXPECT_FALSE(CheapestWithin(planner, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace perseus
