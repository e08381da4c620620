// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perseus/robust_plan.h"
#include "robust/lane_replay.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"
#include "robust/trials.h"
#include "robust/window_replay.h"

// Robust plans for ranges of conditions, and for errors of the profile.
namespace perseus::robust {
namespace {

using robust_testing::OptionsAt;
using robust_testing::RandomKnobs;
using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

constexpr double kAccepted = 0.002;

RobustPlanSpec SpecFor(ValueRange noise, ValueRange latency) {
  RobustPlanSpec spec;
  Conditions& conditions = spec.conditions;
  conditions.noise.per_computation = noise.middle();
  conditions.switching.latency_seconds = latency.middle();
  conditions.switching.call_ahead = CallAhead::kPredicted;
  conditions.max_slowdown = kAccepted;
  if (!noise.is_one()) conditions.ranges.noise = noise;
  if (!latency.is_one()) conditions.ranges.switch_latency_seconds = latency;
  spec.effort = 1.0 / 64;
  spec.with_bound = false;
  return spec;
}

RobustPlan PlanFor(const Planner& planner, const RobustPlanSpec& spec) {
  auto plan = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
  EXPECT_TRUE(plan) << plan.error().message;
  return *std::move(plan);
}

// How much later than accepted in draws that the search has not seen, less what these may be off.
double SurelyLate(const Planner& planner, const Plan& plan, double noise, double latency) {
  const RobustPlanSpec spec = SpecFor(noise, latency);
  const auto figures =
      ReplayUnder(planner, plan, {.conditions = spec.conditions, .iterations = 1000, .seed = 4711});
  EXPECT_TRUE(figures);
  return figures->slowdown_percent - 4 * figures->slowdown_error_percent - 100 * kAccepted;
}

TEST(RangesTest, APlanHoldsAtItsCornersInTheMiddleAndWithin) {
  std::mt19937 random(41);
  for (int run = 0; run < 4; ++run) {
    const Planner planner = RandomPlanner(random, 3, 6, 6);
    const double shortest = ShortestSeconds(planner.pipeline());
    const ValueRange noise(0.005 * (run % 2), 0.015 + 0.005 * run);
    const ValueRange latency(0.2 * shortest, 0.5 * shortest);
    const RobustPlan plan = PlanFor(planner, SpecFor(noise, latency));
    EXPECT_EQ(plan.corners.size(), 4U);
    // Two narrower ranges have corners of their own.
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const double sigma = noise.least + share * (noise.most - noise.least);
      for (const double seconds : {latency.least, latency.middle(), latency.most}) {
        EXPECT_LE(SurelyLate(planner, plan.plan, sigma, seconds), 0)
            << run << ", " << sigma << ", " << seconds;
      }
    }
    EXPECT_GT(plan.expected.saving_percent, 0.5) << run;
  }
}

// That is what ranges are for.
TEST(RangesTest, APlanForOneValueIsLateElsewhere) {
  std::mt19937 random(43);
  int late = 0;
  for (int run = 0; run < 3; ++run) {
    const Planner planner = RandomPlanner(random, 4, 8, 8);
    const RobustPlan plan = PlanFor(planner, SpecFor(0.01, 0.0));
    late += SurelyLate(planner, plan.plan, 0.03, 0) > 0 ? 1 : 0;
    const RobustPlan wide = PlanFor(planner, SpecFor(ValueRange(0, 0.03), 0.0));
    for (const double noise : {0.0, 0.01, 0.015, 0.03}) {
      EXPECT_LE(SurelyLate(planner, wide.plan, noise, 0), 0) << run << ", " << noise;
    }
  }
  EXPECT_GT(late, 0);
}

TEST(RangesTest, ARangeOfOneValueIsThatValue) {
  std::mt19937 random(44);
  const Planner planner = RandomPlanner(random, 3, 4, 5);
  RobustPlanSpec spec = SpecFor(0.01, 0.0);
  const RobustPlan one = PlanFor(planner, spec);
  spec.conditions.ranges.noise = ValueRange(0.01);
  EXPECT_EQ(PlanFor(planner, spec).expected.slowdown_percent, one.expected.slowdown_percent);
}

TEST(RangesTest, RefusesWhatDoesNotContainItsValue) {
  std::mt19937 random(45);
  const Planner planner = RandomPlanner(random, 2, 2, 3);
  for (const ValueRange range :
       {ValueRange(0.02, 0.03), ValueRange(-0.01, 0.02), ValueRange(0, 0.5)}) {
    RobustPlanSpec spec = SpecFor(0.01, 0.0);
    spec.conditions.ranges.noise = range;
    const auto plan = PlanUnder(planner, 100, spec);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidInput);
    EXPECT_NE(plan.error().message.find("'noise'"), std::string::npos);
  }
}

// Of groups whose noise differs; one of them has none, and one job.
TEST(MixedSamplesTest, GroupsHaveTheirNoiseAndTheLatestCounts) {
  std::mt19937 random(46);
  const Planner planner = RandomPlanner(random, 3, 5, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const std::vector<TimeNoise> noises = {{.per_computation = 0.05}, {}};
  Samples samples = DrawMixedSamples(pipeline, noises, 2, 32, 9);
  ASSERT_EQ(samples.groups(), 2);
  EXPECT_EQ(samples.jobs_of[1], 1);
  EXPECT_EQ(samples.jobs_of[0], samples.jobs() - 1);
  for (int lane = 0; lane < samples.lanes; ++lane) {
    const bool sure = samples.group[lane / samples.pipelines] == 1;
    EXPECT_EQ(samples.TimeOf(0)[lane] == 1, sure) << lane;
  }
  const std::vector<int> knobs = RandomKnobs(random, pipeline);
  LaneReplay lanes(pipeline, {}, samples);
  WindowReplay windows(pipeline, {}, samples);
  for (const double scale : {0.5, 1.0, 2.0}) {
    samples.scale = {1, scale};
    lanes.Reset(knobs);
    windows.Reset(knobs);
    const std::vector<double> sums = lanes.GroupSums();
    const double seconds = std::max(sums[0] / samples.jobs_of[0], scale * sums[1]);
    EXPECT_DOUBLE_EQ(lanes.figures().seconds, seconds);
    EXPECT_NEAR(windows.figures().seconds, seconds, 1e-9 * seconds);
    // The paths of the group that is later by far count alone.
    double critical = 0;
    for (const double share : lanes.Criticality()) critical += share;
    EXPECT_GT(critical, 0);
  }
}

TEST(ProfileErrorsTest, LoweredClocksTakeTheirTrueTime) {
  std::mt19937 random(50);
  const Planner planner = RandomPlanner(random, 2, 3, 3);
  const CostedPipeline& pipeline = planner.pipeline();
  const auto lowered = OptionsAt(pipeline, std::vector<int>(pipeline.dag.size(), 1));
  std::vector<double> true_times(pipeline.tables.size() * pipeline.knobs.size(), 1.0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    true_times[t * pipeline.knobs.size() + 1] = 1.5;
  }
  const ReplayedRun measured = ReplayJob(pipeline, lowered, Waiting::kSetClock, {}, 1, 1, 0);
  const ReplayedRun truth =
      ReplayJob(pipeline, lowered, Waiting::kSetClock, {}, 1, 1, 0, true_times);
  // Power stays, and so does the share of waiting.
  EXPECT_NEAR(truth.seconds[0], 1.5 * measured.seconds[0], 1e-9);
  EXPECT_NEAR(truth.joules[0], 1.5 * measured.joules[0], 1e-6);
  const std::vector<CostOption>& baseline = planner.baseline().options;
  EXPECT_EQ(ReplayJob(pipeline, baseline, Waiting::kSetClock, {}, 1, 1, 0, true_times).seconds,
            ReplayJob(pipeline, baseline, Waiting::kSetClock, {}, 1, 1, 0).seconds);
}

// The same, with a profile that states errors of its times at lowered clocks; and of the baseline,
// which are 0, unless `of_baseline` is false.
Planner WithErrors(const Planner& sure, double error, bool of_baseline = true) {
  CostedPipeline pipeline = sure.pipeline();
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      if (option.knob == table.baseline.knob && !of_baseline) continue;
      pipeline.errors.push_back({.stage = table.stage,
                                 .type = table.type,
                                 .knob = option.knob,
                                 .time_std = option.knob == table.baseline.knob ? 0 : error});
    }
  }
  std::sort(pipeline.errors.begin(), pipeline.errors.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.stage, a.type, a.knob) < std::tuple(b.stage, b.type, b.knob);
  });
  auto planner = Planner::Create(std::move(pipeline), {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

// A real job has many iterations, so jobs differ by the errors alone, and not because trials have
// few iterations of each.
TEST(ProfileErrorsTest, NoiseWithinAJobIsNotTakenForADifferenceOfJobs) {
  std::mt19937 random(49);
  const Planner planner = WithErrors(RandomPlanner(random, 3, 6, 6), 1e-9);
  Conditions conditions;
  conditions.noise.per_computation = 0.03;
  const Trials trials(planner.pipeline(), planner.baseline().options, conditions, 1, 32, 8, 1);
  const auto lowered =
      OptionsAt(planner.pipeline(), std::vector<int>(planner.pipeline().dag.size(), 1));
  const ReplayedFigures figures = trials.Of(lowered);
  ASSERT_GT(figures.slowdown_error_percent, 0.001);
  const double margin = trials.Judge(lowered).slower_percent - figures.slowdown_percent;
  EXPECT_GT(margin, 1.5 * figures.slowdown_error_percent);
  EXPECT_LT(margin, 7 * figures.slowdown_error_percent);  // It would be 9.4.
}

// Errors of a few tenths of a per cent leave most of the saving, also where the accepted slowdown
// is less than they are.
TEST(ProfileErrorsTest, SmallErrorsTakeLittleOfTheSaving) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::mt19937 random(seed);
    const Planner sure = RandomPlanner(random, 4, 8, 12);
    RobustPlanSpec spec = SpecFor(0.01, 0.0);
    spec.conditions.max_slowdown = 0.001;
    const double most = PlanFor(sure, spec).expected.saving_percent;
    for (const bool of_baseline : {false, true}) {
      const Planner planner = WithErrors(sure, 0.004, of_baseline);
      EXPECT_GE(PlanFor(planner, spec).expected.saving_percent, 0.75 * most) << seed;
    }
  }
}

// Times of lowered clocks that are not sure leave less to be slowed, and the plan holds in jobs
// whose true times are others.
TEST(ProfileErrorsTest, APlanHoldsInMostJobs) {
  std::mt19937 random(47);
  const Planner planner = WithErrors(RandomPlanner(random, 3, 6, 6), 0.02);
  RobustPlanSpec spec = SpecFor(0.005, 0.0);
  spec.conditions.max_slowdown = 0.01;
  const auto share_late = [&](const Plan& plan) {
    constexpr int kJobs = 100;
    int late = 0;
    for (int job = 0; job < kJobs; ++job) {
      const auto figures = ReplayUnder(
          planner, plan, {.conditions = spec.conditions, .iterations = 20, .seed = 1000U + job});
      late += figures->slowdown_percent > 1 ? 1 : 0;
    }
    return static_cast<double>(late) / kJobs;
  };
  // One seed is one job, with its own true times.
  const auto slowdown = [&](const Plan& plan, bool errors) {
    Conditions conditions = spec.conditions;
    conditions.profile_errors = errors;
    return ReplayUnder(planner, plan, {.conditions = conditions, .iterations = 20, .seed = 5})
        ->slowdown_percent;
  };
  const Plan paper = *planner.PlanFor(1.05 * planner.baseline().iteration_time_seconds);
  EXPECT_GT(std::abs(slowdown(paper, true) - slowdown(paper, false)), 0.01);
  const RobustPlan with = PlanFor(planner, spec);
  EXPECT_TRUE(with.with_profile_errors);
  EXPECT_LE(share_late(with.plan), 0.12);  // 5 % are accepted.
  Conditions& conditions = spec.conditions;
  conditions.profile_errors = false;
  const RobustPlan without = PlanFor(planner, spec);
  EXPECT_FALSE(without.with_profile_errors);
  EXPECT_GE(without.expected.saving_percent, with.expected.saving_percent);
  conditions.profile_errors = true;
  EXPECT_GT(share_late(without.plan), share_late(with.plan));
}

// Fewer changes are taken where the trials do not tell the savings apart.
TEST(PlanUnderTest, TakesFewChangesWhereMoreSaveNoMoreThanTheError) {
  std::mt19937 random(48);
  const Planner planner = RandomPlanner(random, 3, 6, 6);
  RobustPlanSpec spec = SpecFor(0.02, 0.0);
  const RobustPlan plan = PlanFor(planner, spec);
  const auto changes = [&](const Plan& of) {
    return CountKnobChanges(planner.pipeline().dag, of.options)->all();
  };
  const ChangePricePoint& best = plan.price_curve.back();
  EXPECT_LE(changes(plan.plan), best.changes);
  // Without noise the savings are exact, and the best is taken.
  spec.conditions.noise = {};
  const RobustPlan exact = PlanFor(planner, spec);
  EXPECT_EQ(changes(exact.plan), exact.price_curve.back().changes);
}

}  // namespace
}  // namespace perseus::robust
