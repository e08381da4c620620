// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site/days/pace.h"
#include "site/days_testing.h"

namespace perseus::site {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(DaysPace, WaitsForTheLastPipeline) {
  DaysJob job = TinyJob("a");
  job.fleet.pipelines = 3;
  job.fleet.fixed_watts = 7;
  const JobRun run{{1.2, 276}, {1, 300}, 1};
  // The late one takes 1.5 s and 450 J, the others 276 J and 0.3 s of waiting.
  const JobPace pace = PaceOf(job, run, std::vector<double>{1.5});
  EXPECT_DOUBLE_EQ(pace.seconds, 1.5);
  EXPECT_DOUBLE_EQ(pace.watts, 7 + (2 * (276 + 0.3 * 50) + 450) / 1.5);
}

TEST(DaysPace, AJobWithLatePipelinesOnlyMayWait) {
  // The late pipeline takes 1.2 s and 360 J, and waits for 0.3 s.
  const JobPace pace = PaceOf(TinyJob("a"), {{1.5, 255}, {1, 300}, 1}, std::vector<double>{1.2});
  EXPECT_DOUBLE_EQ(pace.seconds, 1.5);
  EXPECT_DOUBLE_EQ(pace.watts, (360 + 0.3 * 50) / 1.5);
}

TEST(DaysPace, APauseDrawsWaitingPower) {
  DaysJob job = TinyJob("a");
  job.fleet.pipelines = 2;
  job.fleet.fixed_watts = 7;
  const JobPace pace = PaceOf(job, PausedRun(), {});
  EXPECT_EQ(pace.iterations_per_second(), 0);
  EXPECT_DOUBLE_EQ(pace.watts, 107);
}

TEST(DaysPace, OptionsAreWithinWhatTheOwnerAccepts) {
  DaysJob job = TinyJob("a");
  job.fleet.slowest_seconds = 1.5;
  const auto options = ClockOptions(job, {}, AcceptedSeconds(job, {}));
  ASSERT_EQ(options.size(), 2);
  EXPECT_DOUBLE_EQ(options.front().pace.seconds, 1.3);
  EXPECT_DOUBLE_EQ(options.back().pace.seconds, 1);
  // A straggler makes the job slower than that: its owner has to accept it.
  EXPECT_DOUBLE_EQ(AcceptedSeconds(job, std::vector<double>{1.8}), 1.8);
}

TEST(DaysPace, ANoisyTableKeepsWhatNothingBeats) {
  DaysJob job = TinyJob("a");
  job.clocks.push_back({1500, {1.1, 352}});  // More power than 1400 MHz, and slower.
  const auto options = ClockOptions(job, {}, kPaused);
  EXPECT_EQ(options.size(), 4);
  for (std::size_t i = 1; i < options.size(); ++i) {
    EXPECT_GT(options[i].pace.watts, options[i - 1].pace.watts);
    EXPECT_LT(options[i].pace.seconds, options[i - 1].pace.seconds);
  }
}

TEST(DaysRules, NobodyIsCutWithinTheLimit) {
  const DaysSite site = TinySite(900, 3);
  for (const char* rule : {"max-clocks", "shedding", "uniform-cap", "one-clock", "proportional-cap",
                           "request-matching", "greedy", "frontier-proportional", "frontier-alike",
                           "perseus", "bound"}) {
    EXPECT_THAT(TimesBy(site, rule), Each(DoubleNear(1, 1e-9))) << rule;
  }
}

TEST(DaysRules, ProportionsAreThoseOfPower) {
  DaysSite site = TinySite(2 * 215 + 1, 2);
  EXPECT_THAT(TimesBy(site, "proportional-cap"), ElementsAre(1.3, 1.3));
  EXPECT_THAT(TimesBy(site, "frontier-proportional"), ElementsAre(1.5, 1.5));
  // 230 + 170 W: the least is 1.5 s, and then one job can be faster.
  EXPECT_THAT(TimesBy(site, "frontier-alike"), UnorderedElementsAre(1.2, 1.5));
}

TEST(DaysRules, OneClockIsTheSameForAll) {
  DaysSite site = TinySite(300 + 215, 2);
  // There is room for one job at 1400 MHz, but not for both.
  EXPECT_THAT(TimesBy(site, "one-clock"), ElementsAre(1.3, 1.3));
  EXPECT_THAT(TimesBy(site, "uniform-cap"), ElementsAre(1.3, 1.3));
}

TEST(DaysRules, SheddingPausesTheLastByPriority) {
  DaysSite site = TinySite(300 + 300 + 50, 3);
  EXPECT_THAT(TimesBy(site, "shedding"), ElementsAre(1, 1, kPaused));
  site.jobs[2].fleet.weight = 2;
  EXPECT_THAT(TimesBy(site, "shedding"), ElementsAre(1, kPaused, 1));
}

TEST(DaysRules, RequestsLackTheSameWattsForEachGpu) {
  DaysSite site = TinySite(2 * 300 + 2 * 215, 2);
  site.jobs[1].gpus = 3;
  site.jobs[1].fleet.pipelines = 3;
  site.jobs[1].fleet.weight = 3;
  // 1,200 W are asked for; 170 are missing: 42.5 a GPU. 257.5 W and 772.5 W are left.
  EXPECT_THAT(TimesBy(site, "request-matching"), ElementsAre(1.3, 1.3));
  // The first one's weight a GPU is greater: it comes first.
  site.jobs[1].fleet.weight = 1;
  EXPECT_THAT(TimesBy(site, "request-matching"), ElementsAre(1, 1.3));
}

TEST(DaysRules, RequestsOfMoreWeightComeFirst) {
  DaysSite site = TinySite(300 + 215, 2);
  site.jobs[1].fleet.weight = 2;
  EXPECT_THAT(TimesBy(site, "request-matching"), ElementsAre(1.3, 1));
}

TEST(DaysRules, GreedyGivesWattsWhereTheyGainMost) {
  DaysSite site = TinySite(215 + 125, 2);
  site.jobs[1].fleet.weight = 10;
  const std::vector<double> times = TimesBy(site, "greedy");
  EXPECT_GT(times[0], times[1]);
}

TEST(DaysRules, DividedExactlyFillsTheSteepestFirst) {
  // By hand: from 2 x 125 W, 90 W more. 125 -> 170 W gains 1/6 of a job, 170 -> 230 W as much: the
  // first step is the cheaper one for both jobs.
  EXPECT_THAT(TimesBy(TinySite(2 * 125 + 2 * 45, 2), "perseus"), ElementsAre(1.5, 1.5));
}

TEST(DaysRules, OwnersAreObeyedWhereTheLimitCannotBeKept) {
  DaysSite site = TinySite(100, 2);
  for (DaysJob& job : site.jobs) job.fleet.slowest_seconds = 1.5;
  EXPECT_THAT(TimesBy(site, "perseus"), ElementsAre(1.5, 1.5));
  EXPECT_THAT(TimesBy(site, "proportional-cap"), ElementsAre(1.3, 1.3));
}

TEST(DaysRules, ALimitOfARackBindsOnlyItsJobs) {
  DaysSite site = TinySite(10'000, 3);
  site.nodes.push_back({"rack", 0, 2 * 215});
  site.jobs[0].fleet.shares = {{1, 1}};
  site.jobs[1].fleet.shares = {{1, 1}};
  for (const char* rule :
       {"uniform-cap", "one-clock", "proportional-cap", "request-matching", "greedy", "perseus"}) {
    const std::vector<double> times = TimesBy(site, rule);
    ASSERT_EQ(times.size(), 3) << rule;
    EXPECT_GT(times[0], 1.1) << rule;
    EXPECT_DOUBLE_EQ(times[2], 1) << rule;
  }
}

TEST(DaysRules, ARackThatCannotBeKeptEndsNoLoop) {
  DaysSite site = TinySite(10'000, 2);
  site.nodes.push_back({"rack", 0, 1});
  site.jobs[0].fleet.shares = {{1, 1}};
  for (const char* rule : {"uniform-cap", "one-clock", "proportional-cap", "request-matching",
                           "greedy", "frontier-proportional"}) {
    const std::vector<double> times = TimesBy(site, rule);
    ASSERT_EQ(times.size(), 2) << rule;
    EXPECT_GT(times[0], 2) << rule;
    EXPECT_DOUBLE_EQ(times[1], 1) << rule;
  }
}

}  // namespace
}  // namespace perseus::site
