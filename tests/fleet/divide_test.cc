// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fleet/sites.h"
#include "perseus/fleet.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using fleet_testing::SmallJob;
using fleet_testing::TwoJobs;
using fleet_testing::TwoJobsInTree;
using ::testing::ElementsAre;

constexpr double kNear = 1e-12;

PowerDivision Bound(const PowerSite& site, FleetObjective objective) {
  const auto answer = DividePower(site, objective);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? answer->bound : PowerDivision{};
}

TEST(DivideTest, TheBestSegmentsFirst) {
  // Watts for a unit of weighted speed: heavy 40, then 60; light 80, then 120.
  const PowerDivision some = Bound(TwoJobs(120), FleetObjective::kThroughput);
  EXPECT_NEAR(some.objective, 2.25, kNear);
  EXPECT_NEAR(some.jobs[0].watts, 20, 1e-9);
  EXPECT_NEAR(some.jobs[0].speed, 0.25, kNear);
  EXPECT_NEAR(some.jobs[0].time_seconds, 4, 1e-9);
  EXPECT_NEAR(some.jobs[1].speed, 1, kNear);
  EXPECT_NEAR(some.nodes[0].watts, 120, 1e-9);
  EXPECT_NEAR(some.nodes[0].price_per_watt, 1.0 / 80, kNear);
  // At a corner, one more watt buys what is next.
  EXPECT_NEAR(Bound(TwoJobs(40), FleetObjective::kThroughput).nodes[0].price_per_watt, 1.0 / 60,
              kNear);
  const PowerDivision all = Bound(TwoJobs(200), FleetObjective::kThroughput);
  EXPECT_EQ(all.objective, 3);
  EXPECT_EQ(all.nodes[0].price_per_watt, 0);
}

TEST(DivideTest, AJobWithoutWattsWaits) {
  const PowerDivision none = Bound(TwoJobs(0), FleetObjective::kThroughput);
  EXPECT_EQ(none.objective, 0);
  EXPECT_TRUE(std::isinf(none.jobs[0].time_seconds));
  EXPECT_EQ(none.jobs[0].watts, 0);
}

TEST(DivideTest, AllAlikeByRatio) {
  // Speeds are level and 2 x level. From 0.25 on, they draw 320 x level - 20.
  const PowerDivision fair = Bound(TwoJobs(100), FleetObjective::kMaxMin);
  EXPECT_NEAR(fair.objective, 0.375, kNear);
  EXPECT_NEAR(fair.jobs[0].speed, 0.375, kNear);
  EXPECT_NEAR(fair.jobs[1].speed, 0.75, kNear);
  EXPECT_NEAR(fair.nodes[0].price_per_watt, 1.0 / 320, kNear);
  // From 0.5 on heavy has all it can use, and light goes on alone.
  const PowerDivision more = Bound(TwoJobs(170), FleetObjective::kMaxMin);
  EXPECT_NEAR(more.jobs[0].speed, 0.75, kNear);
  EXPECT_EQ(more.jobs[1].speed, 1);
}

TEST(DivideTest, TenantsRiseByTheMeanOfTheirJobs) {
  PowerSite site = TwoJobs(90);
  site.jobs.push_back(SmallJob());
  site.jobs[0].tenant = site.jobs[1].tenant = "a";
  site.jobs[1].weight = 1;
  // Tenant a spends 160 W for a unit of ratio, the other 80 W.
  const PowerDivision fair = Bound(site, FleetObjective::kMaxMinTenants);
  EXPECT_NEAR(fair.objective, 0.375, kNear);
  EXPECT_NEAR(fair.jobs[2].watts, 30, 1e-9);
  EXPECT_NEAR(fair.nodes[0].price_per_watt, 1.0 / 240, kNear);
}

TEST(DivideTest, ALimitInTheTreeHoldsBackWhatIsBelow) {
  const PowerDivision tree = Bound(TwoJobsInTree(100, 40), FleetObjective::kThroughput);
  EXPECT_NEAR(tree.jobs[1].speed, 0.5, kNear);
  EXPECT_NEAR(tree.jobs[0].speed, 0.5 + 20.0 / 120, kNear);
  EXPECT_NEAR(tree.nodes[0].price_per_watt, 1.0 / 120, kNear);
  // Of a watt more for heavy, light loses the same watt.
  EXPECT_NEAR(tree.nodes[1].price_per_watt, 1.0 / 60 - 1.0 / 120, kNear);
  EXPECT_NEAR(tree.nodes[1].watts, 40, 1e-9);
  EXPECT_NEAR(tree.nodes[0].watts, 100, 1e-9);

  const PowerDivision fair = Bound(TwoJobsInTree(100, 20), FleetObjective::kMaxMin);
  EXPECT_NEAR(fair.objective, 0.125, kNear);
  EXPECT_NEAR(fair.jobs[0].watts, 80, 1e-9);
}

TEST(DivideTest, AJobInTwoNodesTakesPartOfBoth) {
  PowerSite site = TwoJobsInTree(kNoPowerLimit, 30);
  site.jobs[1].shares = {{1, 0.5}, {0, 0.5}};
  const PowerDivision spread = Bound(site, FleetObjective::kThroughput);
  EXPECT_NEAR(spread.jobs[1].watts, 60, 1e-9);
  EXPECT_NEAR(spread.nodes[1].watts, 30, 1e-9);
  EXPECT_NEAR(spread.nodes[1].price_per_watt, 2.0 / 60, 1e-9);
  EXPECT_NEAR(Bound(site, FleetObjective::kMaxMin).jobs[1].watts, 60, 1e-9);
}

TEST(DivideTest, LatePipelinesFixedWattsAndTheMeter) {
  PowerSite site;
  FleetJob job = SmallJob();
  job.waiting_watts = 10;
  job.pipelines = 2;
  job.late = {{{1.25, 90}}};
  job.fixed_watts = 5;
  site.jobs = {job};
  site.meter_factor = 1.2;
  // At 0.8 iterations a second: 76 W, 72 W of the late one that never waits, 5 W.
  const PowerDivision most = Bound(site, FleetObjective::kThroughput);
  EXPECT_NEAR(most.jobs[0].watts, 153, 1e-9);
  EXPECT_NEAR(most.nodes[0].watts, 153 * 1.2, 1e-9);
  EXPECT_NEAR(most.jobs[0].time_seconds, 1.25, kNear);
  // While both wait.
  site.nodes[0].limit_watts = 25 * 1.2;
  EXPECT_NEAR(Bound(site, FleetObjective::kThroughput).jobs[0].watts, 25, 1e-9);
}

TEST(DivideTest, LeastWattsAndTheSlowestTimeComeFirst) {
  PowerSite site = TwoJobs(100);
  site.jobs[0].least_watts = 40;
  const PowerDivision least = Bound(site, FleetObjective::kThroughput);
  EXPECT_NEAR(least.jobs[0].speed, 0.5, kNear);
  EXPECT_NEAR(least.jobs[1].speed, 0.5 + 20.0 / 120, kNear);
  site.jobs[0].least_watts = 0;
  site.jobs[0].slowest_seconds = 1.25;
  const PowerDivision slowest = Bound(site, FleetObjective::kThroughput);
  EXPECT_NEAR(slowest.jobs[0].time_seconds, 1.25, 1e-9);
  EXPECT_NEAR(slowest.jobs[0].watts, 76, 1e-9);
  // More than it can draw: its most.
  site.jobs[0].least_watts = 1000;
  EXPECT_NEAR(Bound(site, FleetObjective::kThroughput).jobs[0].watts, 100, 1e-9);
}

TEST(DivideTest, PointsAboveTheHullDoNotCount) {
  PowerSite site = TwoJobs(120);
  site.jobs[0].frontier.insert(site.jobs[0].frontier.begin(), {{1.5, 99}, {1, 130}, {3, 200}});
  EXPECT_NEAR(Bound(site, FleetObjective::kThroughput).objective, 2.25, kNear);
}

TEST(DivideTest, WaitingThatCostsMoreThanComputingIsAvoided) {
  PowerSite site = TwoJobs(kNoPowerLimit);
  for (FleetJob& job : site.jobs) job.waiting_watts = 60;
  site.nodes[0].limit_watts = 80;
  const PowerDivision least = Bound(site, FleetObjective::kThroughput);
  EXPECT_NEAR(least.jobs[0].speed, 0.5, kNear);
  EXPECT_NEAR(least.jobs[0].watts, 40, 1e-9);
}

TEST(DivideTest, WhatCannotBeKeptIsNamed) {
  PowerSite site = TwoJobsInTree(60, 30);
  for (FleetJob& job : site.jobs) job.slowest_seconds = 2;
  const auto answer = DividePower(site, FleetObjective::kMaxMin);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(answer.error().message, Mentions("site", "60", "20", "light"));
  const auto shortages = FindShortages(site);
  ASSERT_TRUE(shortages);
  ASSERT_EQ(shortages->size(), 2U);
  EXPECT_NEAR((*shortages)[0].missing_watts, 20, kNear);
  EXPECT_THAT((*shortages)[0].suspend, ElementsAre(0));
  EXPECT_EQ((*shortages)[1].node, 1U);
  EXPECT_NEAR((*shortages)[1].missing_watts, 10, kNear);
  EXPECT_THAT((*shortages)[1].suspend, ElementsAre(1));
}

TEST(DivideTest, TheCheapestSuspensionsAreEnoughAndNoMore) {
  PowerSite site = TwoJobs(0);
  for (FleetJob& job : site.jobs) job.slowest_seconds = 2;
  site.jobs.push_back(site.jobs[0]);
  site.jobs[2].pipelines = 10;
  site.jobs[2].weight = 12;
  // 480 W at least. Light goes for 0.025 a watt, the large one for 0.03, heavy for 0.05.
  site.nodes[0].limit_watts = 470;
  EXPECT_THAT((*FindShortages(site))[0].suspend, ElementsAre(0));
  // Light is not needed beside the large one.
  site.nodes[0].limit_watts = 100;
  EXPECT_THAT((*FindShortages(site))[0].suspend, ElementsAre(2));
  site.nodes[0].limit_watts = 480;
  EXPECT_TRUE(FindShortages(site)->empty());
}

TEST(DivideTest, APreparedSiteTakesOtherLimits) {
  const auto site = PreparedSite::Make(TwoJobs(0));
  ASSERT_TRUE(site);
  for (const double limit : {0.0, 40.0, 120.0, 500.0}) {
    const std::vector<double> limits = {limit};
    const auto again = site->DivideBound(FleetObjective::kThroughput, limits);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->objective, Bound(TwoJobs(limit), FleetObjective::kThroughput).objective);
  }
  const std::vector<double> two = {1, 2};
  EXPECT_FALSE(site->DivideBound(FleetObjective::kThroughput, two));
  const std::vector<double> negative = {-1};
  EXPECT_FALSE(site->Shortages(negative));
}

TEST(DivideTest, ASiteWithoutJobs) {
  for (const auto objective :
       {FleetObjective::kThroughput, FleetObjective::kMaxMin, FleetObjective::kMaxMinTenants}) {
    const auto answer = DividePower(PowerSite{}, objective);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->plans.objective, 0);
    EXPECT_EQ(answer->plans.nodes[0].watts, 0);
  }
}

}  // namespace
}  // namespace perseus
