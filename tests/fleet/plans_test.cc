// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/sites.h"
#include "perseus/fleet.h"

namespace perseus {
namespace {

using fleet_testing::TwoJobs;

// Both jobs have a plan at each end of their frontier, and one between.
PowerSite TwoJobsWithPlans(double limit_watts) {
  PowerSite site = TwoJobs(limit_watts);
  for (FleetJob& job : site.jobs) {
    job.plans = {{1, 100}, {2, 80}, {1.25, 95}};  // 100, 40 and 76 W.
    job.slowest_seconds = 2;
  }
  return site;
}

FleetAnswer Answer(const PowerSite& site, FleetObjective objective) {
  const auto answer = DividePower(site, objective);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? *answer : FleetAnswer{};
}

TEST(PlansTest, EachJobFollowsOneAndTheGapIsSeen) {
  const FleetAnswer answer = Answer(TwoJobsWithPlans(150), FleetObjective::kThroughput);
  EXPECT_EQ(answer.plans.jobs[1].plan, 0U);
  EXPECT_EQ(answer.plans.jobs[0].plan, 1U);
  EXPECT_NEAR(answer.plans.objective, 2.5, 1e-12);
  EXPECT_NEAR(answer.bound.objective, 2.5 + 10.0 / 120, 1e-12);
  EXPECT_NEAR(answer.plans.nodes[0].watts, 140, 1e-9);
}

TEST(PlansTest, WhatASkippedStepLeavesGoesToAnotherJob) {
  // Heavy's step to 100 W does not fit, light's to 76 W would.
  PowerSite site = TwoJobsWithPlans(120);
  site.jobs[1].plans = {{1, 100}, {2, 80}};
  const FleetAnswer answer = Answer(site, FleetObjective::kThroughput);
  EXPECT_EQ(answer.plans.jobs[0].plan, 2U);
  EXPECT_EQ(answer.plans.jobs[1].plan, 1U);
  EXPECT_NEAR(answer.plans.nodes[0].watts, 116, 1e-9);
}

TEST(PlansTest, TheSmallestRatioIsAsLargeAsPlansAllow) {
  // Heavy is the one behind: it goes first, then light takes what is left.
  const FleetAnswer answer = Answer(TwoJobsWithPlans(180), FleetObjective::kMaxMin);
  EXPECT_EQ(answer.plans.jobs[1].plan, 0U);
  EXPECT_EQ(answer.plans.jobs[0].plan, 2U);
  EXPECT_NEAR(answer.plans.objective, 0.5, 1e-12);
}

TEST(PlansTest, AJobMayWaitAfterItsSlowestPlan) {
  PowerSite site = TwoJobsWithPlans(60);
  for (FleetJob& job : site.jobs) job.slowest_seconds.reset();
  const FleetAnswer answer = Answer(site, FleetObjective::kMaxMin);
  EXPECT_EQ(answer.plans.jobs[0].plan, 1U);
  EXPECT_GT(answer.plans.jobs[0].time_seconds, 2);
  EXPECT_GT(answer.plans.objective, 0.2);
  EXPECT_LE(answer.plans.nodes[0].watts, 60 * (1 + 1e-12));
}

TEST(PlansTest, APlanFasterThanALatePipelineWaitsForIt) {
  PowerSite site = TwoJobsWithPlans(kNoPowerLimit);
  site.jobs.resize(1);
  site.jobs[0].plans = {{1, 100}};
  site.jobs[0].slowest_seconds.reset();
  site.jobs[0].waiting_watts = 10;
  site.jobs[0].pipelines = 2;
  site.jobs[0].late = {{{1.25, 90}}};
  const FleetAnswer answer = Answer(site, FleetObjective::kThroughput);
  EXPECT_NEAR(answer.plans.jobs[0].time_seconds, 1.25, 1e-12);
  // (100 J and 0.25 s of waiting, 90 J) in 1.25 s. The frontier does better.
  EXPECT_NEAR(answer.plans.jobs[0].watts, (102.5 + 90) / 1.25, 1e-9);
  EXPECT_NEAR(answer.bound.jobs[0].watts, (95 + 90) / 1.25, 1e-9);
}

TEST(PlansTest, JobsWithoutPlansTakeExactlyWhatIsLeft) {
  PowerSite site = TwoJobsWithPlans(130);
  site.jobs[0].plans.clear();
  const FleetAnswer answer = Answer(site, FleetObjective::kThroughput);
  EXPECT_NEAR(answer.plans.jobs[1].watts + answer.plans.jobs[0].watts, 130, 1e-9);
}

TEST(PlansTest, PlansThatNeedMoreThanTheFrontierDoesAreAShortage) {
  PowerSite site = TwoJobsWithPlans(100);
  for (FleetJob& job : site.jobs) job.plans = {{1.25, 95}};
  for (FleetJob& job : site.jobs) job.slowest_seconds = 1.25;
  const auto answer = DividePower(site, FleetObjective::kThroughput);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInfeasible);
  EXPECT_NEAR((*FindShortages(site))[0].missing_watts, 52, 1e-9);
}

}  // namespace
}  // namespace perseus
