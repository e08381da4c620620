// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "perseus/planner.h"
#include "plan/figures.h"
#include "plan/grouping.h"
#include "plan/named_times.h"
#include "plan/pipelines.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::LeastEffectiveEnergy;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;

constexpr Granularity kCoarse[] = {Granularity::kStage, Granularity::kStageType,
                                   Granularity::kPhase};
// Plans count as equal that differ by less.
constexpr double kNoWorse = 1e-9;
constexpr double kRounding = 1e-12;

Planner TinyPlanner(std::mt19937& random, int microbatches) {
  ProfileShape shape;
  shape.stages = 2;
  shape.clocks = 4;
  shape.noise = random() % 2 == 0 ? 0.0 : 0.03;
  shape.spread = 0.01;
  const char* const schedule = random() % 2 == 0 ? "1f1b" : "gpipe";
  auto planner =
      Planner::Create(Costed(RandomRows(random, shape), DagOf(schedule, shape.stages, microbatches),
                             Blocking(20.0 * static_cast<double>(random() % 5))),
                      {});
  RC_ASSERT(planner.has_value());
  return *std::move(planner);
}

// Holds a plan against all plans with the same groups. Without a time margin.
void CheckBound(const Planner& planner, const Plan& plan,
                const std::vector<std::vector<int>>& groups) {
  if (!plan.shared_knobs) return;
  const SharedKnobBound& bound = *plan.shared_knobs;
  const double watts = planner.pipeline().total_blocking_power_watts;
  const double waiting = watts * plan.iteration_time_seconds;
  const double best_of_the_time =
      waiting + LeastEffectiveEnergy(planner.pipeline(), groups, plan.iteration_time_seconds, {});
  const double size = waiting + std::abs(best_of_the_time);
  RC_ASSERT(bound.lower_bound_joules <= best_of_the_time + kRounding * size);
  RC_ASSERT(bound.lower_bound_joules <= plan.energy_joules);
  RC_ASSERT(bound.lower_bound_joules >= plan.lower_bound_joules - kRounding * size);
  RC_ASSERT(bound.gap_percent >= 0);
  if (bound.proven_best) {
    const double best =
        LeastEffectiveEnergy(planner.pipeline(), groups, plan.requested_time_seconds, {});
    RC_ASSERT(std::abs(plan.energy_joules - waiting - best) <= kNoWorse * size);
  }
}

RC_GTEST_PROP(PlanBoundTest, IsNeverAboveTheBestGroupedPlan, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const Planner planner = TinyPlanner(random, 1 + static_cast<int>(random() % 3));
  const double seconds =
      planner.baseline().iteration_time_seconds * (1 + 0.02 * static_cast<double>(random() % 20));
  for (const Granularity granularity : kCoarse) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const auto groups = GroupComputations(planner.pipeline(), constraints.granularity);
    // From searches that have hardly begun to those that end with a proof.
    for (const double effort : {2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-1}) {
      const auto plan = planner.PlanFor(seconds, {.constraints = constraints, .effort = effort});
      RC_ASSERT(plan.has_value());
      CheckBound(planner, *plan, groups);
      const bool shares = static_cast<int>(groups.size()) < planner.pipeline().dag.size();
      RC_ASSERT(shares || !plan->shared_knobs);
      if (effort > 0.01) {
        RC_ASSERT(!shares || (plan->shared_knobs && plan->shared_knobs->proven_best));
        if (shares) RC_ASSERT(plan->shared_knobs->gap_percent <= 100 * kNoWorse);
      }
    }
  }
}

// With a margin the plan is the best of those that keep it.
RC_GTEST_PROP(PlanBoundTest, HoldsWithATimeMargin, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const Planner planner = TinyPlanner(random, 2);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStageType;
  constraints.time_margin_fraction = 0.02;
  const double seconds = 1.1 * planner.baseline().iteration_time_seconds;
  const auto plan = planner.PlanFor(seconds, {.constraints = constraints});
  RC_ASSERT(plan.has_value());
  RC_ASSERT(plan->shared_knobs.has_value());
  RC_ASSERT(plan->shared_knobs->proven_best);
  const auto groups = GroupComputations(planner.pipeline(), constraints.granularity);
  const double best = LeastEffectiveEnergy(planner.pipeline(), groups, seconds, {0, 0.02}) +
                      planner.pipeline().total_blocking_power_watts * plan->iteration_time_seconds;
  RC_ASSERT(std::abs(plan->energy_joules - best) <= kNoWorse * (1 + std::abs(best)));
  RC_ASSERT(std::abs(plan->shared_knobs->lower_bound_joules - best) <=
            kNoWorse * (1 + std::abs(best)));
}

// A plan for more time that is worse gives way, but its search says what is
// proven about that time.
TEST(PlanBoundTest, ReplacedPlansKeepWhatIsProvenForTheirTime) {
  std::mt19937 random(5);
  const Planner planner = TinyPlanner(random, 3);
  Plan better = planner.baseline();
  better.shared_knobs = {.lower_bound_joules = 7, .gap_percent = 1, .proven_best = true};
  Plan worse = better;
  worse.requested_time_seconds *= 2;
  for (CostOption& option : worse.options) option.energy_joules *= 2;
  worse.shared_knobs = {.lower_bound_joules = 5, .gap_percent = 2, .proven_best = false};
  std::vector<Plan> plans = {better, worse};
  plan::CarryForward(planner.pipeline(), &plans);
  EXPECT_EQ(plans[1].requested_time_seconds, worse.requested_time_seconds);
  ASSERT_TRUE(plans[1].shared_knobs.has_value());
  EXPECT_EQ(plans[1].shared_knobs->lower_bound_joules, 7);  // Of the same achieved time.
  EXPECT_FALSE(plans[1].shared_knobs->proven_best);
  EXPECT_TRUE(plans[0].shared_knobs->proven_best);
}

TEST(PlanBoundTest, IsAbsentWhereNothingIsKnown) {
  std::mt19937 random(3);
  const Planner planner = TinyPlanner(random, 3);
  EXPECT_FALSE(planner.baseline().shared_knobs);
  const double seconds = 1.1 * planner.baseline().iteration_time_seconds;
  EXPECT_FALSE(planner.PlanFor(seconds)->shared_knobs);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kPhase;
  EXPECT_TRUE(planner.PlanFor(seconds, {.constraints = constraints})->shared_knobs);
  const double nothing = -std::numeric_limits<double>::infinity();
  EXPECT_FALSE(SharedKnobBoundOf(planner.pipeline(), planner.baseline(), nothing, false));
}

}  // namespace
}  // namespace perseus::plan
