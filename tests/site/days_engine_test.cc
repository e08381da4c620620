// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "site/days/days_report.h"
#include "site/days_testing.h"

namespace perseus::site {
namespace {

PowerEvent Event(double start, double duration, double share, double notice = 0) {
  PowerEvent event;
  event.start_seconds = start;
  event.duration_seconds = duration;
  event.limit_share = share;
  event.notice_seconds = notice;
  return event;
}

TEST(Days, WithoutALimitMaximumClocksLoseNothing) {
  const DaysAnswer answer = Emulated(TinySite(1000, 2), 1000);
  const DaysFigures figures = RuleOf(answer, "max-clocks").figures.front();
  EXPECT_DOUBLE_EQ(figures.lost_percent, 0);
  EXPECT_DOUBLE_EQ(figures.energy_joules, 2 * 300 * 1000.0);
  EXPECT_DOUBLE_EQ(figures.fairness, 1);
  EXPECT_EQ(figures.plan_changes, 0);
  EXPECT_EQ(RuleOf(answer, "max-clocks").first.jobs[0].iterations, 1000);
}

TEST(Days, APlanTakesEffectAtTheNextIteration) {
  DaysSite site = TinySite(600, 2);
  for (DaysJob& job : site.jobs) job = TinyJob(job.fleet.name, 20);  // Iterations of 20 s.
  site.events = {Event(110, 600, 0.5)};
  const DaysAnswer answer = Emulated(site, 1000);
  // Known at 110 s, obeyed at 120 s.
  const DaysFigures figures = RuleOf(answer, "perseus").figures.front();
  EXPECT_DOUBLE_EQ(figures.over_seconds, 10);
  EXPECT_DOUBLE_EQ(figures.over_most_watts, 300);
  EXPECT_DOUBLE_EQ(figures.over_joules, 3000);
  const auto& spans = RuleOf(answer, "perseus").first.jobs[0].spans;
  EXPECT_DOUBLE_EQ(spans.at(0).to_seconds, 120);
  // After the event, at the first iteration that begins from 710 s on.
  const double slow = spans.at(1).iteration_seconds;
  EXPECT_DOUBLE_EQ(spans.at(1).to_seconds, 120 + slow * std::ceil(590 / slow));
}

TEST(Days, WithNoticeTheLimitIsKept) {
  DaysSite site = TinySite(600, 2);
  for (DaysJob& job : site.jobs) job = TinyJob(job.fleet.name, 20);
  site.events = {Event(110, 600, 0.5, 30)};
  const DaysAnswer answer = Emulated(site, 1000);
  EXPECT_EQ(RuleOf(answer, "perseus").figures.front().over_seconds, 0);
  EXPECT_DOUBLE_EQ(RuleOf(answer, "perseus").first.jobs[0].spans.at(0).to_seconds, 100);
  EXPECT_DOUBLE_EQ(RuleOf(answer, "max-clocks").figures.front().over_seconds, 600);
}

TEST(Days, WhoDrawsMoreWaitsForThoseWhoDrawLess) {
  // The second job comes and takes from the first, whose iterations are long.
  DaysSite site = TinySite(300, 2);
  site.jobs[0] = TinyJob("long", 50);
  site.jobs[1].arrives_seconds = 60;
  site.jobs[1].lasts_seconds = 200;
  site.events = {Event(0, 60, 0.5)};
  const DaysAnswer answer = Emulated(site, 500);
  const RuleAnswer& rule = RuleOf(answer, "perseus");
  double last = 0;
  for (const auto& series : PowerSeries(rule.first, 500, 500)) last += series.back();
  EXPECT_LE(last, 300 * (1 + 1e-9));
}

TEST(Days, RampsAreKept) {
  DaysSite site = TinySite(9000, 30);
  site.events = {Event(3600, 3600, 0.6, 1200)};
  site.ramp_down_watts_per_second = 5;
  site.ramp_up_watts_per_second = 10;
  const DaysAnswer answer = Emulated(site, 3 * 3600);
  const DaysFigures ramped = RuleOf(answer, "perseus").figures.front();
  // Steps of 15 s, and jobs that go in whole plans.
  EXPECT_LE(ramped.fall_watts_per_second, 5 * 1.5);
  EXPECT_LE(ramped.rise_watts_per_second, 10 * 1.5);
  EXPECT_EQ(ramped.over_seconds, 0);
  site.ramp_down_watts_per_second = kNoPowerLimit;
  site.ramp_up_watts_per_second = kNoPowerLimit;
  const DaysAnswer at_once = Emulated(site, 3 * 3600);
  EXPECT_GT(RuleOf(at_once, "perseus").figures.front().fall_watts_per_second, 20);
  EXPECT_GT(ramped.lost_percent, RuleOf(at_once, "perseus").figures.front().lost_percent);
}

TEST(Days, AJobLeavesWhenItsWorkIsDone) {
  DaysSite site = TinySite(1000, 1);
  site.jobs[0].iterations = 100;
  const DaysAnswer answer = Emulated(site, 1000);
  EXPECT_DOUBLE_EQ(RuleOf(answer, "max-clocks").first.jobs[0].leaves_seconds, 100);
  EXPECT_DOUBLE_EQ(RuleOf(answer, "max-clocks").figures.front().energy_joules, 30'000);
  site.nodes[0].limit_watts = 170;
  EXPECT_DOUBLE_EQ(RuleOf(Emulated(site, 1000), "perseus").first.jobs[0].leaves_seconds, 150);
}

TEST(Days, DeadlinesAreMetOrMissed) {
  DaysSite site = TinySite(300, 1);
  site.jobs[0].deadline = WorkDeadline{1000, 0.9};
  site.events = {Event(0, 500, 0.6)};
  const DaysAnswer answer = Emulated(site, 2000);
  EXPECT_EQ(answer.deadlines, 1);
  // 500 s at 1.5 s and 500 s at 1 s: 833 of 900.
  EXPECT_EQ(RuleOf(answer, "perseus").figures.front().deadlines_missed, 1);
  EXPECT_EQ(RuleOf(answer, "max-clocks").figures.front().deadlines_missed, 0);
  site.jobs[0].deadline->share = 0.8;
  EXPECT_EQ(RuleOf(Emulated(site, 2000), "perseus").figures.front().deadlines_missed, 0);
}

TEST(Days, PriceAndCarbonAreOfTheMeter) {
  DaysSite site = TinySite(1000, 1);
  site.meter_factor = 1.5;
  site.price_per_joule = {{0, 1}, {100, 3}};
  site.co2_grams_per_joule = {{0, 2}};
  const DaysFigures figures = RuleOf(Emulated(site, 200), "max-clocks").figures.front();
  EXPECT_DOUBLE_EQ(figures.energy_joules, 1.5 * 300 * 200);
  EXPECT_DOUBLE_EQ(figures.cost, 1.5 * 300 * 100 * (1 + 3));
  EXPECT_DOUBLE_EQ(figures.co2_grams, 2 * figures.energy_joules);
}

TEST(Days, WorkMovesToWhereEnergyIsCheap) {
  DaysSite site = TinySite(1000, 2);
  site.price_per_joule = {{0, 10}, {43200, 1}};
  site.work_share = 0.8;
  const DaysAnswer answer = Emulated(site, 86400);
  const DaysFigures priced = RuleOf(answer, "perseus-priced").figures.front();
  const DaysFigures full = RuleOf(answer, "max-clocks").figures.front();
  EXPECT_NEAR(priced.lost_percent, 20, 0.2);
  EXPECT_LT(priced.cost, 0.75 * full.cost);
  for (const JobDays& job : RuleOf(answer, "perseus-priced").first.jobs) {
    EXPECT_GT(job.spans.front().iteration_seconds, job.spans.back().iteration_seconds);
  }
}

TEST(Days, JainsIndexOfAPausedJob) {
  const DaysFigures figures = RuleOf(Emulated(TinySite(350, 2), 1000), "shedding").figures.front();
  EXPECT_DOUBLE_EQ(figures.fairness, 0.5);
  EXPECT_DOUBLE_EQ(figures.lost_percent, 50);
  EXPECT_DOUBLE_EQ(figures.too_slow_seconds, 1000);
}

TEST(Days, StragglersComeAsOftenAsAskedFor) {
  DaysSite site = TinySite(1e9, 1);
  DaysJob& job = site.jobs[0];
  job.gpus = 64;
  job.fleet.pipelines = 16;
  job.stragglers = {0.5, 600, 1.3};
  double came = 0;
  constexpr int kSeeds = 20;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto calendar = DrawCalendar(site, 86400, static_cast<std::uint64_t>(seed));
    came += static_cast<double>(calendar[0].straggling.size());
    for (const StragglingTime& each : calendar[0].straggling) {
      EXPECT_NEAR(each.to_seconds - each.from_seconds, 600, 1e-9);
      EXPECT_LT(each.pipeline, 16);
    }
  }
  EXPECT_NEAR(came / kSeeds, 32, 4);
}

// A site with jobs that come and go, stragglers, noise and events.
DaysSite AnySite() {
  const auto jobs = *rc::gen::inRange(1, 6);
  DaysSite site = TinySite(*rc::gen::inRange(150, 330) * jobs, jobs);
  for (DaysJob& job : site.jobs) {
    const std::string name = job.fleet.name;
    job = TinyJob(name, *rc::gen::inRange(1, 30));
    job.fleet.pipelines = *rc::gen::inRange(1, 3);
    job.gpus = job.fleet.pipelines;
    job.fleet.weight = *rc::gen::inRange(1, 4);
    job.arrives_seconds = *rc::gen::inRange(0, 2000);
    if (*rc::gen::arbitrary<bool>()) job.lasts_seconds = *rc::gen::inRange(500, 9000);
    job.noise = *rc::gen::elementOf(std::vector<double>{0, 0.05});
    job.stragglers = {*rc::gen::elementOf(std::vector<double>{0, 1}), 900, 1.2};
  }
  if (*rc::gen::arbitrary<bool>()) site.events = {Event(3000, 2000, 0.8, 600)};
  return site;
}

RC_GTEST_PROP(DaysProperty, NoPlansBeatTheBound, ()) {
  const DaysSite site = AnySite();
  const DaysAnswer answer = Emulated(site, 10'000);
  const double bound = RuleOf(answer, "bound").figures.front().lost_percent;
  const DaysFigures ours = RuleOf(answer, "perseus").figures.front();
  // Work of iterations that ran over a limit is no work within limits.
  if (ours.over_seconds == 0 && site.events.empty()) RC_ASSERT(ours.lost_percent >= bound - 0.05);
}

RC_GTEST_PROP(DaysProperty, TheBoundKeepsEveryLimitThatCanBeKept, ()) {
  const DaysSite site = AnySite();
  RC_ASSERT(RuleOf(Emulated(site, 10'000), "bound").figures.front().over_seconds == 0);
}

RC_GTEST_PROP(DaysProperty, EnergyIsThatOfTheJobs, ()) {
  const DaysSite site = AnySite();
  for (const RuleAnswer& rule : Emulated(site, 10'000).rules) {
    double joules = 0;
    for (const JobDays& job : rule.first.jobs) {
      double at = job.arrives_seconds;
      for (const JobSpan& span : job.spans) {
        RC_ASSERT(std::abs(span.from_seconds - at) < 1e-6);  // No gap and no overlap.
        at = span.to_seconds;
        joules += span.watts * (span.to_seconds - span.from_seconds);
      }
      if (!job.spans.empty()) RC_ASSERT(std::abs(at - job.leaves_seconds) < 1e-5);
    }
    RC_ASSERT(std::abs(joules - rule.figures.front().energy_joules) <= 1e-9 * joules + 1e-9);
  }
}

RC_GTEST_PROP(DaysProperty, TheSameSeedGivesTheSameDays, ()) {
  const DaysSite site = AnySite();
  const DaysAnswer first = Emulated(site, 5000, {3, 4});
  const DaysAnswer again = Emulated(site, 5000, {3, 4});
  for (std::size_t r = 0; r < first.rules.size(); ++r) {
    for (const NamedFigure& each : DaysFigureList()) {
      for (std::size_t s = 0; s < 2; ++s) {
        const double one = first.rules[r].figures[s].*each.figure;
        const double other = again.rules[r].figures[s].*each.figure;
        RC_ASSERT(one == other);
      }
    }
  }
}

}  // namespace
}  // namespace perseus::site
