// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "fleet/sites.h"
#include "perseus/fleet.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using fleet_testing::SmallJob;

PowerSite OneJob() {
  PowerSite site;
  site.jobs = {SmallJob()};
  site.jobs[0].name = "only";
  return site;
}

PowerPeriod Period(double price_per_joule) {
  PowerPeriod period;
  period.seconds = 10;
  period.price_per_joule = price_per_joule;
  return period;
}

PowerSchedule Bound(const PowerSite& site, const std::vector<PowerPeriod>& periods,
                    const std::vector<FleetDeadline>& deadlines) {
  const auto answer = SchedulePower(site, periods, deadlines);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? answer->bound : PowerSchedule{};
}

TEST(ScheduleTest, WorkGoesWherePowerIsCheap) {
  // An iteration costs 80 or 120 J at price 1, then 240 or 360 at price 3.
  const PowerSchedule schedule = Bound(OneJob(), {Period(1), Period(3)}, {{0, 1, 12}});
  EXPECT_NEAR(schedule.cost, 1480, 1e-6);
  EXPECT_NEAR(schedule.periods[0].jobs[0].speed, 1, 1e-9);
  EXPECT_NEAR(schedule.periods[1].jobs[0].speed, 0.2, 1e-9);
  EXPECT_NEAR(schedule.periods[1].objective, 480, 1e-6);
}

TEST(ScheduleTest, ALimitMovesWorkAndHasAPrice) {
  PowerPeriod limited = Period(1);
  limited.limit_watts = {40};
  const PowerSchedule schedule = Bound(OneJob(), {limited, Period(3)}, {{0, 1, 8}});
  EXPECT_NEAR(schedule.cost, 400 + 3 * 240, 1e-6);
  // A watt more is 10 J for 1/12 iteration, in place of 240 for a whole one.
  EXPECT_NEAR(schedule.periods[0].nodes[0].price_per_watt, 240 * 10.0 / 120 - 10, 1e-6);
}

TEST(ScheduleTest, ADeadlineInTheMiddleComesFirst) {
  const PowerSchedule schedule = Bound(OneJob(), {Period(3), Period(1)}, {{0, 0, 4}, {0, 1, 10}});
  EXPECT_NEAR(schedule.periods[0].jobs[0].speed, 0.4, 1e-9);
  EXPECT_NEAR(schedule.periods[1].jobs[0].speed, 0.6, 1e-9);
}

TEST(ScheduleTest, WhereConsumptionIsPaidForAllRuns) {
  const PowerSchedule schedule = Bound(OneJob(), {Period(-1), Period(1)}, {});
  EXPECT_NEAR(schedule.cost, -1000, 1e-6);
  EXPECT_NEAR(schedule.periods[0].jobs[0].speed, 1, 1e-9);
  EXPECT_NEAR(schedule.periods[1].jobs[0].speed, 0, 1e-9);
  // Under a limit, the watts are on the curve: they do the work that they can.
  PowerPeriod limited = Period(-1);
  limited.limit_watts = {70};
  const PowerSchedule less = Bound(OneJob(), {limited}, {});
  EXPECT_NEAR(less.periods[0].jobs[0].speed, 0.75, 1e-9);
  EXPECT_NEAR(less.cost, -700, 1e-6);
}

TEST(ScheduleTest, PlansAlternate) {
  PowerSite site = OneJob();
  site.jobs[0].plans = {{1, 104}, {2, 80}};
  const auto answer = SchedulePower(site, {Period(1)}, {{0, 0, 7.5}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_NEAR(answer->bound.cost, 700, 1e-6);
  EXPECT_NEAR(answer->plans.cost, 720, 1e-6);
  const JobShare& share = answer->plans.periods[0].jobs[0];
  EXPECT_EQ(share.plan, 1U);
  EXPECT_EQ(share.other_plan, 0U);
  EXPECT_NEAR(share.other_share, 0.5, 1e-9);
}

TEST(ScheduleTest, ADeadlineThatCannotBeMetIsNamed) {
  const auto answer = SchedulePower(OneJob(), {Period(1)}, {{0, 0, 12}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(answer.error().message, Mentions("only", "12", "0", "2"));
}

TEST(ScheduleTest, ALimitThatCannotBeKeptIsNamedWithItsPeriod) {
  PowerSite site = OneJob();
  site.jobs[0].slowest_seconds = 2;
  PowerPeriod limited = Period(1);
  limited.limit_watts = {30};
  const auto answer = SchedulePower(site, {Period(1), limited}, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(answer.error().message, Mentions("1", "site", "10"));
}

}  // namespace
}  // namespace perseus
