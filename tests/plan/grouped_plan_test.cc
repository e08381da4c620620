// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/grouped_plan.h"

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

PlanConstraints By(Granularity granularity, double dwell_seconds = 0) {
  PlanConstraints constraints;
  constraints.granularity = granularity;
  constraints.min_dwell_seconds = dwell_seconds;
  return constraints;
}

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

// Every rank keeps each knob long enough, or one throughout.
bool KeepsDwell(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                double dwell_seconds) {
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    double seconds = 0;
    bool changed = false;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k > 0 && options[order[k]].knob != options[order[k - 1]].knob) {
        if (seconds < dwell_seconds) return false;
        seconds = 0;
        changed = true;
      }
      seconds += options[order[k]].time_seconds;
    }
    if (changed && seconds < dwell_seconds) return false;
  }
  return true;
}

TEST(GroupedPlanTest, KnowsWhatSharesKnobs) {
  std::mt19937 random(1);
  const CostedPipeline pipeline = RandomPipeline(random, 3, 3, 4);
  EXPECT_FALSE(SharesKnobs(pipeline, {}));
  EXPECT_FALSE(SharesKnobs(pipeline, By(Granularity::kComputation, 0.5)));
  EXPECT_TRUE(SharesKnobs(pipeline, By(Granularity::kComputation, 1.9)));
  for (const Granularity granularity : kShared) {
    EXPECT_TRUE(SharesKnobs(pipeline, By(granularity)));
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
    const auto groups = GroupComputations(pipeline, constraints);
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

RC_GTEST_PROP(GroupedPlanTest, DwellIsKeptAndNeverWorseThanNoChange, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const int stages = 2 + static_cast<int>(random() % 3);
  const CostedPipeline pipeline = RandomPipeline(random, stages, 3 + static_cast<int>(random() % 8),
                                                 2 + static_cast<int>(random() % 5));
  std::map<Granularity, double> before;  // With less time.
  const double baseline = BaselineSeconds(pipeline);
  const double dwell = 1.5 + 0.5 * static_cast<double>(random() % 20);
  for (const double factor : {1.0, 1.03, 1.15}) {
    const double seconds = factor * baseline;
    const auto stage = SearchGroups(pipeline, seconds, By(Granularity::kStage), 0.2);
    RC_ASSERT(stage.has_value());
    double coarser =
        std::min(OneForAll(pipeline, seconds), EffectiveEnergy(pipeline, stage->options));
    for (const Granularity granularity : {Granularity::kStage, Granularity::kStageType,
                                          Granularity::kPhase, Granularity::kComputation}) {
      const PlanConstraints constraints = By(granularity, dwell);
      if (!SharesKnobs(pipeline, constraints)) continue;
      const auto little = SearchGroups(pipeline, seconds, constraints, 0.002);
      const auto plan = SearchGroups(pipeline, seconds, constraints, 0.2);
      RC_ASSERT(plan.has_value());
      const double joules = EffectiveEnergy(pipeline, plan->options);
      const double same = kSame * std::abs(joules);
      RC_ASSERT(IterationSeconds(pipeline, plan->options) <= seconds);
      RC_ASSERT(KeepsDwell(pipeline, plan->options, dwell));
      RC_ASSERT(joules <= coarser + same);
      if (before.contains(granularity)) RC_ASSERT(joules <= before[granularity] + same);
      before[granularity] = joules;
      if (little) RC_ASSERT(joules <= EffectiveEnergy(pipeline, little->options) + same);
      coarser = joules;
    }
  }
}

TEST(GroupedPlanTest, LittleEffortIsLittleWorkForManyMicrobatchesWithADwell) {
  std::mt19937 random(4);
  for (const int microbatches : {16, 64, 256}) {
    const CostedPipeline pipeline = RandomPipeline(random, 4, 12, microbatches);
    const double seconds = 1.04 * BaselineSeconds(pipeline);
    const auto plan = SearchGroups(pipeline, seconds, By(Granularity::kComputation, 1.9), 1e-4);
    ASSERT_TRUE(plan);
    // Groupings by level and granularity, each begun with every clock.
    EXPECT_LE(plan->work, 2'000'000 + 1000 * pipeline.dag.size()) << microbatches;
    EXPECT_TRUE(KeepsDwell(pipeline, plan->options, 1.9));
  }
}

// Rows of equal stages whose forward lasts 1 s and backward 2 s at the highest clock, which is not
// jittered.
std::string JitteredRows(std::mt19937& random) {
  const auto jittered = [&random](double value) {
    return value * (0.98 + 0.04 * static_cast<double>(random() % 1001) / 1000);
  };
  std::string rows = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 4; ++stage) {
    for (int clock = 0; clock < 12; ++clock) {
      const double slower = 1 + 0.05 * clock;
      for (const auto& [name, seconds] : {std::pair{"forward", 1.0}, {"backward", 2.0}}) {
        const double time = seconds * slower;
        const double joules = seconds * (200 + 10 * stage) * (0.4 / slower + 0.3 * slower + 0.3);
        rows += std::to_string(stage) + "," + name + "," + std::to_string(1400 - 50 * clock) + "," +
                std::to_string(clock == 0 ? time : jittered(time)) + "," +
                std::to_string(jittered(joules)) + "\n";
      }
    }
  }
  return rows;
}

// A dwell of one cycle keeps every shorter one, so none of those may give a worse plan.
TEST(GroupedPlanTest, AShorterDwellThanACycleIsNeverWorse) {
  for (const auto& [seed, factor] :
       {std::pair{0U, 1.02}, {0U, 1.1}, {1U, 1.02}, {2U, 1.05}, {3U, 1.1}}) {
    std::mt19937 random(seed);
    const CostedPipeline pipeline =
        Costed(JitteredRows(random), DagOf("1f1b", 4, 96), Blocking(60));
    const double seconds = factor * BaselineSeconds(pipeline);
    const auto energy = [&](double dwell) {
      const auto plan = SearchGroups(pipeline, seconds, By(Granularity::kComputation, dwell), 0.1);
      EXPECT_TRUE(plan);
      EXPECT_TRUE(KeepsDwell(pipeline, plan->options, dwell));
      return EffectiveEnergy(pipeline, plan->options);
    };
    const double of_cycle = energy(3);
    for (const double dwell : {1.2, 2.2}) {
      EXPECT_LE(energy(dwell), of_cycle * (1 + kSame)) << seed << ' ' << factor << ' ' << dwell;
    }
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
  for (const PlanConstraints& constraints :
       {By(Granularity::kPhase), By(Granularity::kComputation, 4)}) {
    const auto one = SearchGroups(pipeline, seconds, constraints, 0.1);
    const auto other = SearchGroups(pipeline, seconds, constraints, 0.1);
    ASSERT_TRUE(one && other);
    for (std::size_t i = 0; i < one->options.size(); ++i) {
      EXPECT_EQ(one->options[i].knob, other->options[i].knob);
    }
  }
}

}  // namespace
}  // namespace perseus::plan
