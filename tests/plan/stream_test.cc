// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "perseus/work.h"
#include "plan/pipelines.h"
#include "plan/planner_testing.h"
#include "plan/stream_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::DagOf;
using plan_testing::kTwoStages;
using plan_testing::ProfileOf;
using plan_testing::Stream;
using testing::HasSubstr;

TEST(WorkCostsTest, TimeEnergyAndNothingElseGrow) {
  CostSpec spec = Blocking(20);
  const auto plain = CostPipeline(ProfileOf(kTwoStages), DagOf("1f1b", 2, 4), spec);
  spec.work = Work({2, 1, 2, 0.5});
  const auto costed = CostPipeline(ProfileOf(kTwoStages), DagOf("1f1b", 2, 4), spec);
  ASSERT_TRUE(plain && costed);
  // Four kinds, each of three amounts of work.
  EXPECT_EQ(costed->tables.size(), 12U);
  for (int i = 0; i < costed->dag.size(); ++i) {
    const CostTable& table = costed->TableOf(i);
    const CostTable& before = plain->TableOf(i);
    const double factor = spec.work.FactorOf(costed->dag.computations[i].id);
    EXPECT_EQ(table.work, factor);
    ASSERT_EQ(table.all_options.size(), before.all_options.size());
    for (std::size_t k = 0; k < table.all_options.size(); ++k) {
      EXPECT_EQ(table.all_options[k].time_seconds, factor * before.all_options[k].time_seconds);
      EXPECT_EQ(table.all_options[k].energy_joules, factor * before.all_options[k].energy_joules);
    }
    const CostTable& kind = costed->tables[costed->KindOf(costed->table_of[i])];
    EXPECT_EQ(kind.same_kind_as, -1);
    EXPECT_EQ(kind.stage, table.stage);
    EXPECT_EQ(kind.type, table.type);
  }
}

TEST(WorkCostsTest, SharedKnobsAreSharedAcrossDifferentWork) {
  CostSpec spec = Blocking(20);
  spec.work = Work({2, 1, 3, 0.5});
  const auto costed = CostPipeline(ProfileOf(kTwoStages), DagOf("1f1b", 2, 4), spec);
  ASSERT_TRUE(costed);
  const Planner planner = plan_testing::Plans(*costed);
  for (const Granularity granularity :
       {Granularity::kStage, Granularity::kStageType, Granularity::kPhase}) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const auto plan = planner.PlanFor(1.1 * planner.baseline().iteration_time_seconds,
                                      {.constraints = constraints, .effort = 0.1});
    ASSERT_TRUE(plan) << plan.error().message;
    plan_testing::CheckHonest(planner, *plan);
    if (granularity == Granularity::kPhase) continue;
    std::set<std::pair<int, int>> clocks;  // Kind and knob.
    std::set<int> kinds;
    for (int i = 0; i < costed->dag.size(); ++i) {
      const int kind = costed->KindOf(costed->table_of[i]);
      clocks.emplace(kind, plan->options[i].knob);
      kinds.insert(kind);
    }
    EXPECT_EQ(clocks.size(), kinds.size());
  }
}

TEST(WorkCostsTest, RefusesFactorsOutOfRangeAndTooManyMicrobatches) {
  CostSpec spec = Blocking(20);
  for (const double factor : {0.0, -1.0, 1e9}) {
    spec.work = Work({1, factor});
    const auto costed = CostPipeline(ProfileOf(kTwoStages), DagOf("1f1b", 2, 4), spec);
    ASSERT_FALSE(costed);
    EXPECT_THAT(costed.error().message, Mentions("microbatch", "1"));
  }
  spec.work = Work({1, 1, 1, 1, 1});
  const auto costed = CostPipeline(ProfileOf(kTwoStages), DagOf("1f1b", 2, 4), spec);
  ASSERT_FALSE(costed);
  EXPECT_THAT(costed.error().message, Mentions("5", "microbatches"));
}

TEST(StreamTest, APlanIsTheOneForItsLengthsWhateverCameBefore) {
  const StreamPlanner stream = Stream(4);
  const auto first = stream.PlanFor(Work({2, 1, 1, 0.5}));
  ASSERT_TRUE(first) << first.error().message;
  plan_testing::CheckHonest(first->planner, first->plan);
  ASSERT_TRUE(stream.PlanFor(Work({1, 3, 1, 1})));
  const auto again = stream.PlanFor(Work({2, 1, 1, 0.5}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->plan.energy_joules, first->plan.energy_joules);
  EXPECT_EQ(again->plan.iteration_time_seconds, first->plan.iteration_time_seconds);
  EXPECT_LE(first->plan.iteration_time_seconds, first->planner.baseline().iteration_time_seconds);
  EXPECT_GT(first->plan.saving_percent, 0);
}

TEST(StreamTest, TwiceTheWorkIsTwiceTheTimeAndEnergy) {
  const StreamPlanner stream = Stream(4);
  const auto once = stream.PlanFor(Work({1, 1, 1, 1}));
  const auto twice = stream.PlanFor(Work({2, 2, 2, 2}));
  ASSERT_TRUE(once && twice);
  EXPECT_DOUBLE_EQ(twice->plan.iteration_time_seconds, 2 * once->plan.iteration_time_seconds);
  EXPECT_NEAR(twice->plan.energy_joules, 2 * once->plan.energy_joules, 1e-9);
}

TEST(StreamTest, UsesTheTimeThatAnotherPipelineTakes) {
  const StreamPlanner stream = Stream(4);
  const auto own = stream.PlanFor(Work({2, 1, 1, 0.5}));
  ASSERT_TRUE(own);
  const double later = 1.2 * own->plan.iteration_time_seconds;
  const auto waits = stream.PlanFor(Work({2, 1, 1, 0.5}), later);
  ASSERT_TRUE(waits);
  EXPECT_LE(waits->plan.iteration_time_seconds, later);
  EXPECT_GT(waits->plan.iteration_time_seconds, own->plan.iteration_time_seconds);
  const auto sooner = stream.PlanFor(Work({2, 1, 1, 0.5}), 0.5 * later);
  ASSERT_TRUE(sooner);
  EXPECT_EQ(sooner->plan.energy_joules, own->plan.energy_joules);
}

TEST(StreamTest, SaysItsTimeWithoutAPlan) {
  const Work work({2, 1, 1, 0.5});
  for (const char* target : {"1.0x", "1.07x", "fastest", "min-energy", "0.5"}) {
    StreamOptions options;
    options.target = *ParsePlanTarget(target);
    const StreamPlanner stream = Stream(4, options);
    const auto seconds = stream.TargetSeconds(work);
    const auto planned = stream.PlanFor(work);
    ASSERT_EQ(seconds.has_value(), planned.has_value()) << target;
    if (seconds) {
      EXPECT_EQ(*seconds, planned->plan.requested_time_seconds) << target;
    }
  }
  EXPECT_FALSE(Stream(4).TargetSeconds(Work({1, 1, 1, 1, 1})));
}

TEST(StreamTest, KeepsToItsOptionsAndStopsWhenTold) {
  StreamOptions options;
  options.constraints.granularity = Granularity::kStage;
  const auto one = Stream(4, options).PlanFor(Work({2, 1, 1, 0.5}));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->plan.knob_changes, 0);
  int calls = 0;
  const auto stopped = Stream(4).PlanFor(Work({2, 1, 1, 0.5}), [&calls](const Progress&) {
    ++calls;
    return false;
  });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(Stream(4).PlanFor(Work({1, 1, 1, 1, 1})));
}

}  // namespace
}  // namespace perseus
