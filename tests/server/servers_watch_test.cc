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

#include "server/api/messages.h"
#include "server/detect/job_watch.h"
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

}  // namespace
}  // namespace perseus::server
