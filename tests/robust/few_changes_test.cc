// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "robust/bounds.h"
#include "robust/robust_testing.h"

namespace perseus {
namespace {

using robust::SearchFewChanges;
using robust_testing::OptionsAt;
using robust_testing::RandomPlanner;

RobustPlanSpec AtMost(std::int64_t changes) {
  RobustPlanSpec spec;
  spec.conditions.max_changes = changes;
  spec.effort = 1.0 / 64;
  return spec;
}

TEST(FewChangesTest, SmallPlansAreTheBestOfAllAndTheBoundSaysSo) {
  std::mt19937 random(31);
  for (int run = 0; run < 6; ++run) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    RobustPlanSpec spec = AtMost(run);
    spec.conditions.max_slowdown = 0.03 * (run % 3);
    const double seconds = planner.baseline().iteration_time_seconds;
    double most = -1e300;
    std::vector<int> knobs(8, 0);
    for (int code = 0; code < 6561; ++code) {  // 3 clocks, 8 computations.
      for (int i = 0, rest = code; i < 8; ++i, rest /= 3) knobs[i] = rest % 3;
      const Plan plan = *planner.Evaluate(OptionsAt(planner.pipeline(), knobs));
      if (CountKnobChanges(planner.pipeline().dag, knobs)->all() > run) continue;
      if (plan.iteration_time_seconds > seconds * (1 + spec.conditions.max_slowdown + 1e-11)) {
        continue;
      }
      most = std::max(most, 100 * (1 - plan.energy_joules / planner.baseline().energy_joules));
    }
    const auto found = PlanUnder(planner, seconds, spec);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->expected.saving_percent, most, 1e-7) << run;
    EXPECT_TRUE(found->bound.proven);
    EXPECT_NEAR(found->bound.saving_percent, most, 1e-7) << run;
  }
}

TEST(FewChangesTest, ABoundThatIsNotMetIsAboveThePlan) {
  std::mt19937 random(32);
  for (int run = 0; run < 4; ++run) {
    const Planner planner = RandomPlanner(random, 3, 5, 6);
    for (const double effort : {1e-5, 1e-3, 0.1}) {
      RobustPlanSpec spec = AtMost(4 + run);
      spec.effort = effort;
      const auto found = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
      ASSERT_TRUE(found);
      EXPECT_LE(found->expected.saving_percent, found->bound.saving_percent + 1e-7);
      EXPECT_LE(found->bound.saving_percent, found->bound.saving_without_switching_percent + 1e-7);
    }
  }
}

// Also where hardly any is proven.
TEST(FewChangesTest, AHigherLimitIsNeverWorse) {
  std::mt19937 random(34);
  for (int run = 0; run < 5; ++run) {
    const Planner planner = RandomPlanner(random, 3 + run % 3, 3 + run % 4, 6);
    for (const double effort : {1e-5, 1e-4, 1e-3}) {
      double before = -1e300;
      for (int changes = 0; changes <= 12; ++changes) {
        RobustPlanSpec spec = AtMost(changes);
        spec.effort = effort;
        const auto found = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
        ASSERT_TRUE(found);
        EXPECT_GE(found->expected.saving_percent, before - 1e-9) << run << " " << changes;
        before = found->expected.saving_percent;
      }
    }
  }
}

TEST(FewChangesTest, SaysNothingWhereMoreThanChangesStandsBetweenPlanAndTruth) {
  std::mt19937 random(33);
  const Planner planner = RandomPlanner(random, 2, 2, 3);
  const double seconds = planner.baseline().iteration_time_seconds;
  const auto is_searched = [&](const RobustPlanSpec& spec) {
    return SearchFewChanges(planner, spec, seconds).has_value();
  };
  EXPECT_TRUE(is_searched(AtMost(2)));
  EXPECT_FALSE(is_searched({}));
  RobustPlanSpec spec = AtMost(2);
  spec.conditions.noise.per_computation = 0.01;
  EXPECT_FALSE(is_searched(spec));
  spec = AtMost(2);
  spec.conditions.switching.latency_seconds = 0.01;
  EXPECT_FALSE(is_searched(spec));
  spec = AtMost(2);
  spec.conditions.change_joules = 1;
  EXPECT_FALSE(is_searched(spec));
  spec = AtMost(2);
  spec.constraints.granularity = Granularity::kPhase;
  EXPECT_FALSE(is_searched(spec));
  const Planner large = RandomPlanner(random, 4, 9, 3);
  EXPECT_FALSE(SearchFewChanges(large, AtMost(2), large.baseline().iteration_time_seconds));
}

}  // namespace
}  // namespace perseus
