// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Latencies that differ by clock: from what ranks tell to what plans are made for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "server/api/messages.h"
#include "server/detect/conditions_watch.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using ::testing::ElementsAre;

constexpr double kAll = 0.02;
constexpr double kSlow = 0.06;

// Most clocks take 20 ms, 900 MHz take 60. 1000 MHz may take 30; one call says little.
RankConditions ToldOfClocks() {
  return {
      .noise_variance = RankFigure{1e-4, 1e-7},
      .rank_noise_variance = RankFigure{0, 1e-7},
      .noise_correlation = RankFigure{0, 0.03},
      .latency_seconds = RankFigure{kAll, 0.0003},
      .latency_spread_seconds = RankFigure{0.001, 0.0001},
      .latency_at = {{.clock_mhz = 900, .seconds = RankFigure{kSlow, 0.0004}, .calls = 40},
                     {.clock_mhz = 1000, .seconds = RankFigure{0.03, 0.02}, .calls = 1},
                     {.clock_mhz = 1200, .seconds = RankFigure{kAll + 0.001, 0.0001}, .calls = 64}},
      .iterations = 100,
      .computations = 3000,
      .calls = 64};
}

MeasuredConditions Combined(const std::vector<double>& slow) {
  ConditionsWatch watch;
  int rank = 0;
  for (const double seconds : slow) {
    RankConditions told = ToldOfClocks();
    told.latency_at.front().seconds->value = seconds;
    watch.Take(rank++, told);
  }
  return watch.Combined();
}

std::vector<ClockLatency> Planned(const PlannedConditions& planned) {
  JobFile settings;
  SetConditions(planned, &settings);
  return settings.switch_latency_at;
}

TEST(ClockLatencies, AreMeansOverRanksOfClocksThatSurelyDiffer) {
  const MeasuredConditions measured = Combined({0.058, 0.06, 0.062});
  ASSERT_EQ(measured.latency_at.size(), 3U);
  EXPECT_EQ(measured.latency_at[0].clock_mhz, 900);
  EXPECT_NEAR(measured.latency_at[0].seconds.value, kSlow, 1e-12);
  EXPECT_EQ(measured.latency_at[0].seconds.ranks, 3);
  // 1000 MHz is not sure, and no plan feels what 1200 MHz differ by.
  EXPECT_THAT(OwnLatencies(measured.latency_at, kAll), ElementsAre(measured.latency_at[0]));
  const PlannedConditions planned = PlannedFor({}, measured);
  EXPECT_THAT(Planned(planned),
              ElementsAre(ClockLatency{900, measured.latency_at[0].seconds.value}));
  // In a job file the same, unless the settings say how long calls take.
  JobFile planned_file;
  SetMeasured(measured, &planned_file);
  EXPECT_EQ(planned_file.switch_latency_at, Planned(planned));
  JobFile given;
  given.switch_latency_seconds = 0.1;
  SetMeasured(measured, &given);
  EXPECT_TRUE(given.switch_latency_at.empty());
  JobFile flag;
  flag.switch_latency_at = {{900, 0.5}};
  SetMeasured(measured, &flag);
  EXPECT_THAT(flag.switch_latency_at, ElementsAre(ClockLatency{900, 0.5}));
}

TEST(ClockLatencies, BringNewPlansOnceTheyHaveMoved) {
  constexpr double kLong = 1e4;  // Since the plans were made, seconds.
  const MeasuredConditions measured = Combined({kSlow, kSlow});
  PlannedConditions planned = PlannedFor({}, measured);
  EXPECT_FALSE(HaveMoved(planned, measured, kLong));
  EXPECT_FALSE(HaveMoved(planned, Combined({0.07, 0.07}), kLong));  // By less than a third.
  EXPECT_TRUE(HaveMoved(planned, Combined({0.1, 0.1}), kLong));
  EXPECT_FALSE(HaveMoved(planned, Combined({0.1, 0.1}), 0));  // Seldom.
  planned.latency_at.clear();
  EXPECT_TRUE(HaveMoved(planned, measured, kLong));
  EXPECT_FALSE(HaveMoved(planned, measured, 0));  // The latency of all is measured.
  // Plans know no longer of a clock that is like others now.
  EXPECT_TRUE(PlannedFor(planned, Combined({kAll, kAll})).latency_at.empty());
}

// Calls for clocks that differ have no latency of all that is sure, or one that flips.
TEST(ClockLatencies, AreWhatCountsWhereClocksDiffer) {
  MeasuredConditions measured = Combined({kSlow, kSlow});
  MeasuredCondition& all = measured.figures[static_cast<std::size_t>(Condition::kLatency)];
  all.error = 0.02;
  ASSERT_FALSE(IsSureLatency(all));
  PlannedConditions planned;
  EXPECT_TRUE(HaveMoved(planned, measured, 0));
  planned = PlannedFor(planned, measured);
  EXPECT_FALSE(planned.IsMeasured(Condition::kLatency));
  EXPECT_THAT(Planned(planned), ElementsAre(ClockLatency{900, kSlow}));
  EXPECT_FALSE(HaveMoved(planned, measured, 0));
  EXPECT_FALSE(HaveMoved(planned, measured, 1e4));
  // As many calls for the slow clock as for others: the median is of one or of the other.
  all = {.value = kSlow, .error = 0.001, .ranks = 2};
  EXPECT_FALSE(HaveMoved(planned, measured, 1e4));
}

// Nobody calls for a clock that plans avoid as it is slow.
TEST(ClockLatencies, AreNotForgottenOfClocksThatNobodyCallsFor) {
  const PlannedConditions planned = PlannedFor({}, Combined({kSlow, kSlow}));
  MeasuredConditions others = Combined({kSlow, kSlow});
  others.latency_at.erase(others.latency_at.begin());
  EXPECT_EQ(PlannedFor(planned, others).latency_at, planned.latency_at);
  EXPECT_FALSE(HaveMoved(planned, others, 1e4));
  EXPECT_THAT(WithKnown(others.latency_at, planned.latency_at),
              ElementsAre(planned.latency_at[0], others.latency_at[1]));
}

TEST(ClockLatencies, AreKept) {
  ConditionsState state;
  state.measured = Combined({kSlow, kSlow});
  state.plan = PlannedFor({}, state.measured);
  state.next = state.plan;
  state.next->latency_at.push_back({1300, {.value = 0.5, .error = 0.25, .ranks = 2}});
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
  const KeptConditions kept = {.job = "j-1", .at_seconds = 5, .measured = state.measured};
  EXPECT_EQ(ParseKeptConditions(FormatKeptConditions(kept)), kept);
  const nlohmann::json shown =
      JsonOf(kProfileRecord, {.conditions_json = FormatKeptConditions(kept)})["conditions"];
  EXPECT_EQ(shown["latency_at"].size(), 1U);
  EXPECT_EQ(shown["latency_at"][0]["clock_mhz"], 900);
  // Plans of a later job begin with them.
  store::ProfileRecord profile;
  profile.id = "p-1";
  profile.conditions_json = FormatKeptConditions(kept);
  EXPECT_EQ(StartedFrom(profile, {}).plan.latency_at, state.plan.latency_at);
}

class ClockLatenciesTest : public ServiceTest {};

TEST_F(ClockLatenciesTest, PlansAreMadeForThem) {
  auto job = Create(R"({"schedule":"1f1b","microbatches":2,"data_parallel":2,"blocking_power":20,)"
                    R"("effort":0.001,"stages":2,"conditions":{}})");
  RegisterAll(*job);
  AwaitRefined(*job);
  EXPECT_EQ(JsonOf(kJob, job->View())["conditions"]["latency_at"].size(), 0U);
  std::vector<ClientReport> clients;
  for (int rank = 0; rank < 4; ++rank) {
    clients.push_back({.rank = rank, .state = "following"});
    clients.back().conditions = ToldOfClocks();
  }
  ASSERT_TRUE(sync::Report(*job, {}, clients).has_value());
  ASSERT_TRUE(Eventually([&] {
    const JobView view = job->View();
    return view.conditions->plan.any_measured() && !view.conditions->next && view.refined;
  }));
  const Conditions conditions = ConditionsOf(job->board().Current()->curve->job().settings);
  EXPECT_THAT(conditions.switching.latency_at, ElementsAre(ClockLatency{900, kSlow}));
  const nlohmann::json shown = JsonOf(kJob, job->View())["conditions"]["latency_at"];
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0]["clock_mhz"], 900);
  EXPECT_EQ(shown[0]["planned_s"], kSlow);
  EXPECT_EQ(shown[0]["measured_s"], kSlow);
  EXPECT_EQ(shown[0]["ranks"], 4);
}

}  // namespace
}  // namespace perseus::server
