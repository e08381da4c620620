// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plan/grouping.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::IterationSeconds;
using plan_testing::LeastEffectiveEnergy;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;

constexpr Granularity kShared[] = {Granularity::kStage, Granularity::kStageType,
                                   Granularity::kPhase};
// What counts as no worse: the search calls plans equal that differ by less.
constexpr double kSame = 1e-9;

PlanConstraints By(Granularity granularity) { return {.granularity = granularity}; }

CostedPipeline RandomPipeline(std::mt19937& random, int stages, int clocks, int microbatches) {
  ProfileShape shape;
  shape.stages = stages;
  shape.clocks = clocks;
  shape.noise = random() % 2 == 0 ? 0.0 : 0.03;
  shape.spread = 0.01;
  const char* const schedules[] = {"1f1b", "gpipe", "1f1b"};
  return Costed(RandomRows(random, shape), DagOf(schedules[random() % 3], stages, microbatches),
                Blocking(20.0 * static_cast<double>(random() % 5)));
}

double BaselineSeconds(const CostedPipeline& pipeline) {
  std::vector<CostOption> options;
  for (const int table : pipeline.table_of) options.push_back(pipeline.tables[table].baseline);
  return IterationSeconds(pipeline, options);
}

// The least effective energy with one knob for all, as policy zeus-global has;
// infinite where none ends in time.
double OneForAll(const CostedPipeline& pipeline, double seconds) {
  double least = std::numeric_limits<double>::infinity();
  for (int knob = 0; knob < static_cast<int>(pipeline.knobs.size()); ++knob) {
    std::vector<CostOption> options;
    for (const int table : pipeline.table_of) {
      const CostOption* option = FindOption(pipeline.tables[table], knob);
      if (option != nullptr) options.push_back(*option);
    }
    if (options.size() == pipeline.table_of.size() &&
        IterationSeconds(pipeline, options) <= seconds) {
      least = std::min(least, EffectiveEnergy(pipeline, options));
    }
  }
  return least;
}

TEST(GroupedPlanTest, KnowsWhatSharesKnobs) {
  std::mt19937 random(1);
  const CostedPipeline pipeline = RandomPipeline(random, 3, 3, 4);
  EXPECT_FALSE(SharesKnobs(pipeline, Granularity::kComputation));
  for (const Granularity granularity : kShared) {
    EXPECT_TRUE(SharesKnobs(pipeline, granularity));
  }
}

RC_GTEST_PROP(GroupedPlanTest, IsTheBestOfItsKind, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const CostedPipeline pipeline = RandomPipeline(random, 2, 4, 1 + static_cast<int>(random() % 3));
  const double seconds =
      BaselineSeconds(pipeline) * (0.99 + 0.02 * static_cast<double>(random() % 20));
  for (const Granularity granularity : kShared) {
    PlanConstraints constraints = By(granularity);
    if (random() % 3 == 0) constraints.time_margin_sigmas = 2;
    const Guard guard = {constraints.time_margin_sigmas, 0};
    const auto groups = GroupComputations(pipeline, constraints.granularity);
    const double least = LeastEffectiveEnergy(pipeline, groups, seconds, guard);
    const auto plan = SearchGroups(pipeline, seconds, constraints, 0.1);
    RC_ASSERT(plan.has_value() == std::isfinite(least));
    if (!plan) continue;
    const double joules = EffectiveEnergy(pipeline, plan->options);
    const double same = kSame * (1 + std::abs(least));
    RC_ASSERT(std::abs(joules - least) <= same);
    RC_ASSERT(plan->proven);
    RC_ASSERT(plan->lower_bound_effective_joules <= least + 1e-13 * std::abs(least));
    RC_ASSERT(plan->lower_bound_effective_joules >= least - same);
  }
}

RC_GTEST_PROP(GroupedPlanTest, LooserConstraintsAreNeverWorse, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const int stages = 2 + static_cast<int>(random() % 4);
  const CostedPipeline pipeline = RandomPipeline(
      random, stages, 3 + static_cast<int>(random() % 12), 1 + static_cast<int>(random() % 12));
  const double baseline = BaselineSeconds(pipeline);
  std::vector<double> before;  // By granularity; of a shorter time.
  for (const double factor : {1.0, 1.013, 1.04, 1.1, 1.4}) {
    const double seconds = factor * baseline;
    double coarser = OneForAll(pipeline, seconds);
    std::vector<double> now;
    for (const Granularity granularity : kShared) {
      const auto little = SearchGroups(pipeline, seconds, By(granularity), 1e-4);
      const auto plan = SearchGroups(pipeline, seconds, By(granularity), 0.2);
      RC_ASSERT(plan.has_value());
      const double joules = EffectiveEnergy(pipeline, plan->options);
      const double same = kSame * std::abs(joules);
      RC_ASSERT(IterationSeconds(pipeline, plan->options) <= seconds);
      if (little) RC_ASSERT(joules <= EffectiveEnergy(pipeline, little->options) + same);
      RC_ASSERT(joules <= coarser + same);
      if (plan->proven && !before.empty()) RC_ASSERT(joules <= before[now.size()] + same);
      coarser = joules;
      now.push_back(joules);
    }
    before = now;
  }
}

TEST(GroupedPlanTest, SaysWhatIsInfeasible) {
  std::mt19937 random(2);
  const CostedPipeline pipeline = RandomPipeline(random, 3, 3, 4);
  const auto plan = SearchGroups(pipeline, 1.0, By(Granularity::kStage), 1);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(plan.error().message, Mentions("relax"));
}

TEST(GroupedPlanTest, IsTheSameEachTime) {
  std::mt19937 random(3);
  const CostedPipeline pipeline = RandomPipeline(random, 4, 12, 10);
  const double seconds = 1.04 * BaselineSeconds(pipeline);
  const auto one = SearchGroups(pipeline, seconds, By(Granularity::kPhase), 0.1);
  const auto other = SearchGroups(pipeline, seconds, By(Granularity::kPhase), 0.1);
  ASSERT_TRUE(one && other);
  for (std::size_t i = 0; i < one->options.size(); ++i) {
    EXPECT_EQ(one->options[i].knob, other->options[i].knob);
  }
}

}  // namespace
}  // namespace perseus::plan
