// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Several servers that detect stragglers of one job: one word, and not each its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "server/api/watch_json.h"
#include "server/detect/busy_times.h"
#include "server/servers_testing.h"

namespace perseus::server {
namespace {

class ServersWatchTest : public ServersTest {
 protected:
  void SetUp() override {
    ServersTest::SetUp();
    MakeRunning();
    const auto set = sync::SetWatch(*jobs_[0], [](WatchSettings* settings) {
      settings->mode = DetectionMode::kAct;
      settings->shift = {.threshold = 0.05, .window = 8};
    });
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_TRUE(sync::Refresh(*jobs_[1]));
  }

  // Iterations of all ranks as their plans say, but that rank 1 takes `factor` times as long;
  // each rank tells the server that `server_of` names.
  void Iterate(int times, double factor, const std::function<int(int rank)>& server_of) {
    for (int i = 0; i < times; ++i, ++iteration_) {
      // Whoever is told of a version has heard of it.
      ASSERT_TRUE(sync::Refresh(*jobs_[0]));
      ASSERT_TRUE(sync::Refresh(*jobs_[1]));
      const auto plan = jobs_[0]->board().Current();
      std::array<std::vector<IterationReport>, 2> reports;
      for (int rank = 0; rank < 4; ++rank) {
        const CurvePlan* const of = plan->PlanOf(rank / 2);
        IterationReport report{
            .rank = rank,
            .iteration = iteration_,
            .plan_version = plan->version.version,
            .clocks = of == nullptr ? ReportedClocks::kMaximum : ReportedClocks::kPlan};
        const double slower = (rank == 1 ? factor : 1) * (1 + 0.002 * normal_(random_));
        report.busy_by_type = BusyTimes(*plan->curve, of)[static_cast<std::size_t>(rank % 2)];
        for (double& seconds : report.busy_by_type) report.busy_seconds += seconds *= slower;
        report.time_seconds = of == nullptr ? plan->curve->baseline_time_seconds()
                                            : of->iteration_time_seconds * slower;
        reports[static_cast<std::size_t>(server_of(rank))].push_back(report);
      }
      for (std::size_t server = 0; server < 2; ++server) {
        now_[server] = now_[server] + 1;
        const auto reported = sync::Report(*jobs_[server], reports[server]);
        ASSERT_TRUE(reported) << reported.error().message;
        sync::Tick(*jobs_[server]);
      }
    }
    ASSERT_TRUE(sync::Refresh(*jobs_[0]));
    ASSERT_TRUE(sync::Refresh(*jobs_[1]));
  }

  std::vector<store::StragglerRecord> Stragglers(int server) const {
    return jobs_[static_cast<std::size_t>(server)]->View().stragglers;
  }

  int iteration_ = 0;
  std::mt19937_64 random_{5};
  std::normal_distribution<double> normal_;
};

int ByPipeline(int rank) { return rank / 2; }

TEST_F(ServersWatchTest, AStragglerThatOneFoundIsOneForBoth) {
  Iterate(24, 1, ByPipeline);
  EXPECT_TRUE(Stragglers(0).empty());
  Iterate(12, 1.3, ByPipeline);
  ASSERT_EQ(Stragglers(0).size(), 1U);
  const store::StragglerRecord found = Stragglers(0)[0];
  EXPECT_EQ(found.rank, 1);
  ASSERT_EQ(Stragglers(1).size(), 1U);
  EXPECT_EQ(Stragglers(1)[0].id, found.id);
  const std::int64_t version = VersionOf(*jobs_[0]);
  Iterate(40, 1.3, ByPipeline);
  EXPECT_EQ(Stragglers(0)[0].id, found.id);
  EXPECT_TRUE(AgreesOn(version));

  // Worse: the same straggler with another factor, which the other server takes as it is.
  Iterate(24, 1.7, ByPipeline);
  ASSERT_EQ(Stragglers(0).size(), 1U);
  EXPECT_EQ(Stragglers(0)[0].id, found.id);
  EXPECT_NEAR(Stragglers(0)[0].factor, 1.7, 0.05);
  EXPECT_EQ(Stragglers(1)[0].factor, Stragglers(0)[0].factor);
  EXPECT_TRUE(AgreesOn(VersionOf(*jobs_[0])));
  EXPECT_EQ(jobs_[1]->View().watch.slow[0].factor, Stragglers(0)[0].factor);

  Iterate(40, 1, ByPipeline);
  EXPECT_TRUE(Stragglers(0).empty());
  EXPECT_TRUE(Stragglers(1).empty());
  EXPECT_TRUE(jobs_[1]->View().watch.slow.empty());
  EXPECT_TRUE(AgreesOn(VersionOf(*jobs_[0])));
}

TEST_F(ServersWatchTest, ARankThatReportsHereAndThereIsFoundOnce) {
  const auto by_turns = [&](int /*rank*/) { return iteration_ % 2; };
  Iterate(60, 1, by_turns);
  Iterate(60, 1.3, by_turns);
  ASSERT_EQ(Stragglers(0).size(), 1U);
  const store::StragglerRecord found = Stragglers(0)[0];
  const std::int64_t version = VersionOf(*jobs_[0]);
  Iterate(40, 1.3, by_turns);
  ASSERT_EQ(Stragglers(1).size(), 1U);
  EXPECT_EQ(Stragglers(1)[0].id, found.id);
  EXPECT_TRUE(AgreesOn(version));
  Iterate(80, 1, by_turns);
  EXPECT_TRUE(Stragglers(0).empty());
  EXPECT_TRUE(AgreesOn(VersionOf(*jobs_[0])));
}

TEST_F(ServersWatchTest, ARankThatMovedIsClearedByWhereItReportsNow) {
  Iterate(24, 1, ByPipeline);
  Iterate(16, 1.3, ByPipeline);
  ASSERT_EQ(Stragglers(0).size(), 1U);
  const auto at_the_other = [](int) { return 1; };
  // What the first server no longer hears of is no evidence.
  Iterate(70, 1.3, at_the_other);
  ASSERT_EQ(Stragglers(0).size(), 1U);
  for (auto& now : now_) now = now + 1000;
  Iterate(40, 1, at_the_other);
  EXPECT_TRUE(Stragglers(0).empty());
  EXPECT_TRUE(jobs_[0]->View().watch.slow.empty());
  EXPECT_TRUE(jobs_[1]->View().watch.slow.empty());
}

TEST_F(ServersWatchTest, EachSaysHowManyRanksReportToIt) {
  Iterate(3, 1, [](int rank) { return rank == 0 ? 0 : 1; });
  for (std::size_t server = 0; server < 2; ++server) {
    const auto json = DetectionJson(jobs_[server]->View().watch);
    EXPECT_EQ(json["reporting_ranks"], server == 0 ? 1 : 3);
    EXPECT_EQ(json["ranks"], 4);
  }
  now_[1] = now_[1] + 1000;
  EXPECT_EQ(jobs_[1]->View().watch.reporting_ranks, 0U);
}

TEST_F(ServersWatchTest, WhatOneServerAcknowledgedTheOtherShowsAlsoOfAFinishedJob) {
  const auto shown = [&](int server) {
    const auto job = sync::GetFresh(*services_[server], jobs_[0]->id());
    return (*job)->View().watch.settings;
  };
  ASSERT_TRUE(sync::SetWatch(*jobs_[0], [](WatchSettings* settings) {
    settings->shift.window = 12;
    settings->comparison = {.every = 50, .iterations = 10};
  }));
  EXPECT_EQ(shown(1).shift.window, 12);
  EXPECT_EQ(shown(1).comparison.every, 50);
  ASSERT_TRUE(sync::SetWatch(*jobs_[0], [](WatchSettings* settings) {
    settings->shift.window = 16;
    settings->comparison = {};
  }));
  ASSERT_TRUE(sync::Finish(*jobs_[0]));
  EXPECT_EQ(shown(1).shift.window, 16);
  EXPECT_FALSE(shown(1).comparison.is_on());
}

}  // namespace
}  // namespace perseus::server
