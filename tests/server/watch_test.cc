// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Detection and comparison of a whole job: reports in, plans out.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/api/messages.h"
#include "server/detect/job_watch.h"
#include "server/ops/metrics.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using ::testing::HasSubstr;

class WatchTest : public ServiceTest {
 protected:
  WatchTest() : job_(Create()) {
    RegisterAll(*job_);
    AwaitRefined(*job_);
  }

  void SetMode(DetectionMode mode, int window = 8) {
    const auto set = sync::SetWatch(*job_, [&](WatchSettings* settings) {
      settings->mode = mode;
      settings->shift = {.threshold = 0.05, .window = window};
    });
    ASSERT_TRUE(set) << set.error().message;
  }

  std::shared_ptr<const PublishedPlan> Plan() const { return job_->board().Current(); }
  double Requested(int pipeline) const { return Plan()->PlanOf(pipeline)->requested_time_seconds; }

  // One iteration of all ranks as their plans say, but for `factors` of busy time.
  void Iterate(const std::map<int, double>& factors = {}, bool shadow = false) {
    const auto plan = Plan();
    const bool at_maximum = shadow || plan->comparison.AtMaximum(iteration_);
    std::vector<IterationReport> reports;
    std::vector<ClientReport> clients;
    for (int rank = 0; rank < 4; ++rank) {
      const CurvePlan* const of = at_maximum ? nullptr : plan->PlanOf(rank / 2);
      IterationReport report{
          .rank = rank,
          .iteration = iteration_,
          .plan_version = plan->version.version,
          .clocks = of == nullptr ? ReportedClocks::kMaximum : ReportedClocks::kPlan};
      const auto found = factors.find(rank);
      const double factor =
          (found == factors.end() ? 1.0 : found->second) * (1 + 0.002 * normal_(random_));
      report.busy_by_type = BusyTimes(*plan->curve, of)[static_cast<std::size_t>(rank % 2)];
      for (double& seconds : report.busy_by_type) report.busy_seconds += seconds *= factor;
      report.time_seconds = of == nullptr ? plan->curve->baseline_time_seconds()
                                          : of->iteration_time_seconds * factor;
      report.energy_joules = (at_maximum ? 1000 : 880) * (1 + 0.002 * normal_(random_));
      reports.push_back(report);
      clients.push_back({.rank = rank, .shadow = shadow});
    }
    const auto reported = sync::Report(*job_, reports, clients);
    ASSERT_TRUE(reported) << reported.error().message;
    sync::Tick(*job_);
    ++iteration_;
  }
  void IterateTimes(int times, const std::map<int, double>& factors = {}) {
    for (int i = 0; i < times; ++i) Iterate(factors);
  }

  std::shared_ptr<ManagedJob> job_;
  int iteration_ = 0;
  std::mt19937_64 random_{5};
  std::normal_distribution<double> normal_;
};

TEST_F(WatchTest, OffByDefaultNothingIsFound) {
  IterateTimes(20);
  IterateTimes(20, {{3, 1.3}});
  EXPECT_TRUE(job_->View().stragglers.empty());
  EXPECT_EQ(job_->View().watch.watched_ranks, 0U);
}

TEST_F(WatchTest, AdvisoryOnlySaysSo) {
  std::vector<std::string> told;
  service_->events().Listen(job_->id(), [&](const Event* event) {
    if (event != nullptr && event->name() == "detection") told.push_back(event->data);
    return true;
  });
  SetMode(DetectionMode::kAdvisory);
  const auto version = Plan()->version.version;
  IterateTimes(16);
  IterateTimes(12, {{3, 1.3}});
  const WatchView view = job_->View().watch;
  ASSERT_EQ(view.slow.size(), 1U);
  EXPECT_EQ(view.slow[0].rank, 3);
  EXPECT_EQ(view.slow[0].dp_rank, 1);
  EXPECT_EQ(view.slow[0].pp_rank, 1);
  EXPECT_FALSE(view.slow[0].straggler);
  EXPECT_THAT(view.slow[0].cause, Mentions("3", "1", "node1"));
  EXPECT_THAT(view.slow[0].cause, Mentions("alike"));
  EXPECT_TRUE(job_->View().stragglers.empty());
  EXPECT_EQ(Plan()->version.version, version);
  service_->events().Settle();
  ASSERT_FALSE(told.empty());
  const auto event = nlohmann::json::parse(told[0]);
  EXPECT_EQ(event["kind"], "straggler");
  EXPECT_EQ(event["rank"], 3);
  EXPECT_LE(event["delay_iterations"], 12);
  IterateTimes(20);
  EXPECT_TRUE(job_->View().watch.slow.empty());
  EXPECT_EQ(job_->View().watch.counts.at("recovered"), 1);
  service_->events().Settle();
}

// 0 would say that iterations are as long as usual, which nobody knows yet.
TEST_F(WatchTest, NoExcessIsToldBeforeTheUsualTimeIsKnown) {
  SetMode(DetectionMode::kAdvisory);
  const Metrics metrics;
  const auto tells = [&] {
    return metrics.Text(*service_, http::Counters{}, {})
               .find("perseus_job_iteration_excess_ratio{") != std::string::npos;
  };
  EXPECT_FALSE(tells());
  Iterate({});
  EXPECT_FALSE(tells());
  IterateTimes(20);
  EXPECT_TRUE(tells());
}

TEST_F(WatchTest, ActAnswersAndClears) {
  SetMode(DetectionMode::kAct);
  const double target = Requested(0);
  IterateTimes(16);
  IterateTimes(12, {{3, 1.3}});
  const JobView slow = job_->View();
  ASSERT_EQ(slow.stragglers.size(), 1U);
  EXPECT_EQ(slow.stragglers[0].rank, 3);
  EXPECT_NEAR(slow.stragglers[0].factor, 1.3, 0.02);
  EXPECT_EQ(Plan()->version.reason, "straggler");
  EXPECT_GT(Requested(0), target);
  EXPECT_EQ(slow.watch.slow[0].straggler, slow.stragglers[0].id);
  // Under the new plans, too, it is the same straggler and no other.
  IterateTimes(40, {{3, 1.3}});
  EXPECT_EQ(job_->View().stragglers.size(), 1U);
  IterateTimes(24);
  EXPECT_TRUE(job_->View().stragglers.empty());
  EXPECT_EQ(Plan()->version.reason, "target");
  EXPECT_EQ(Requested(0), target);
}

TEST_F(WatchTest, AnOperatorsStragglersStayAndTheirWordHolds) {
  SetMode(DetectionMode::kAct);
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 0, .factor = 1.1}));
  IterateTimes(16);
  IterateTimes(12, {{3, 1.3}});
  ASSERT_EQ(job_->View().stragglers.size(), 2U);
  // Cleared by hand: left alone until it has recovered.
  ASSERT_TRUE(sync::ClearStraggler(*job_, job_->View().stragglers[1].id));
  IterateTimes(24, {{3, 1.3}});
  ASSERT_EQ(job_->View().stragglers.size(), 1U);
  EXPECT_EQ(job_->View().stragglers[0].pipeline, 0);
  EXPECT_TRUE(job_->View().watch.slow[0].dismissed);
  IterateTimes(24);
  IterateTimes(12, {{3, 1.3}});
  EXPECT_EQ(job_->View().stragglers.size(), 2U);
  // Off: what it found goes, what others said stays.
  SetMode(DetectionMode::kOff);
  sync::Tick(*job_);
  ASSERT_EQ(job_->View().stragglers.size(), 1U);
  EXPECT_EQ(job_->View().stragglers[0].pipeline, 0);
}

TEST_F(WatchTest, ARestartForgetsNeitherSettingsNorStragglers) {
  SetMode(DetectionMode::kAct);
  IterateTimes(16);
  IterateTimes(12, {{3, 1.3}});
  ASSERT_EQ(job_->View().stragglers.size(), 1U);
  const std::string id = job_->id();
  job_.reset();
  Restart();
  job_ = sync::Find(*service_, id);
  ASSERT_NE(job_, nullptr);
  AwaitRefined(*job_);
  EXPECT_EQ(job_->View().watch.settings.mode, DetectionMode::kAct);
  EXPECT_EQ(job_->View().watch.settings.shift.window, 8);
  IterateTimes(30, {{3, 1.3}});
  EXPECT_EQ(job_->View().stragglers.size(), 1U);
  IterateTimes(30);
  EXPECT_TRUE(job_->View().stragglers.empty());
}

TEST_F(WatchTest, SlowIterationsAreExplainedOrNot) {
  SetMode(DetectionMode::kAdvisory);
  IterateTimes(16);
  IterateTimes(20, {{1, 1.2}, {3, 1.2}});
  EXPECT_THAT(job_->View().watch.slow_cause, Mentions("stragglers"));
  EXPECT_EQ(job_->View().watch.together, "all ranks of stage 1");
}

TEST_F(WatchTest, AComparisonIsANewVersionThatRanksHearOf) {
  const auto version = Plan()->version.version;
  ASSERT_TRUE(sync::SetWatch(*job_, [](WatchSettings* settings) {
    settings->comparison = {.every = 10, .iterations = 4};
  }));
  EXPECT_EQ(Plan()->version.version, version + 1);
  EXPECT_EQ(Plan()->comparison, (ComparisonBlocks{.every = 10, .iterations = 4}));
  IterateTimes(60);
  const auto json = JsonOf(kSavings, job_->View());
  EXPECT_EQ(json["kind"], "measured");
  ASSERT_EQ(json["measured"].size(), 1U);
  const auto& measured = json["measured"][0];
  EXPECT_EQ(measured["plan_version"], version + 1);
  EXPECT_EQ(measured["pairs"], 3);
  EXPECT_NEAR(measured["saving_percent"]["mean"].get<double>(), 12, 0.5);
  EXPECT_LT(measured["saving_percent"]["least"].get<double>(), 12.2);
  EXPECT_GT(measured["saving_percent"]["most"].get<double>(), 11.8);
  EXPECT_NEAR(measured["with_plan_j_per_gpu"].get<double>(), 880, 5);
  EXPECT_TRUE(json["predicted"].is_object());
  EXPECT_THAT(Metrics().Text(*service_, http::Counters{}, {}),
              HasSubstr(fmt::format("perseus_job_compared_plan_version{{job_id=\"{}\"}} {}\n",
                                    job_->id(), version + 1)));
  // What is saved from the first figure on: 12 parts for 88 that are used. At maximum clocks, which
  // 8 of 20 iterations are at, nothing is.
  const IterationTotals before = job_->View().watch.totals;
  EXPECT_EQ(before.with_energy, 60);
  IterateTimes(20);
  const IterationTotals after = job_->View().watch.totals;
  const auto saved = [](double share) { return 12 * 4 * 880 * share / (1 - share); };
  EXPECT_NEAR(after.measured_saved_joules - before.measured_saved_joules, saved(0.12), 600);
  EXPECT_EQ(after.measured_lost_joules, 0);
  const double predicted = Plan()->PlanOf(0)->saving_percent / 100;
  EXPECT_NEAR(after.predicted_joules - before.predicted_joules, saved(predicted),
              saved(predicted) / 10);
  // The sums of iterations keep the two apart.
  for (const auto& summary : job_->View().iterations) {
    EXPECT_TRUE(summary.plan_version == 0 || summary.plan_version == version + 1);
  }
  ASSERT_TRUE(sync::SetWatch(*job_, [](WatchSettings* settings) { settings->comparison = {}; }));
  EXPECT_EQ(Plan()->version.version, version + 2);
  EXPECT_FALSE(Plan()->comparison.is_on());
  // Detection alone is no news for ranks.
  SetMode(DetectionMode::kAdvisory);
  EXPECT_EQ(Plan()->version.version, version + 2);
}

TEST_F(WatchTest, DetectionGoesOnWhileThePlanIsCompared) {
  ASSERT_TRUE(sync::SetWatch(*job_, [](WatchSettings* settings) {
    settings->mode = DetectionMode::kAdvisory;
    settings->shift.window = 8;
    settings->comparison = {.every = 10, .iterations = 4};
  }));
  IterateTimes(60);
  EXPECT_TRUE(job_->View().watch.slow.empty());
  IterateTimes(20, {{2, 1.25}});
  ASSERT_EQ(job_->View().watch.slow.size(), 1U);
  EXPECT_EQ(job_->View().watch.slow[0].rank, 2);
}

// A trainer that plans its steps itself follows no version, and is not at maximum clocks.
TEST_F(WatchTest, IterationsWithAPlanOfTheirOwnAreNotAmongThoseAtMaximumClocks) {
  const auto report = [&](ReportedClocks clocks, double seconds) {
    return sync::Report(*job_,
                        {{.rank = 0,
                          .iteration = iteration_++,
                          .plan_version = 0,
                          .time_seconds = seconds,
                          .clocks = clocks}},
                        {});
  };
  ASSERT_TRUE(report(ReportedClocks::kMaximum, 2));
  ASSERT_TRUE(report(ReportedClocks::kPlan, 100));
  ASSERT_TRUE(report(ReportedClocks::kCoarse, 100));
  ASSERT_TRUE(report(ReportedClocks::kMaximum, 4));
  const auto json = JsonOf(kSavings, job_->View());
  EXPECT_NEAR(json["measured_at_maximum_s"].get<double>(), 3, 1e-9);
}

TEST_F(WatchTest, InShadowModeSavingsAreAnEstimate) {
  for (int i = 0; i < 5; ++i) Iterate({}, /*shadow=*/true);
  const auto json = JsonOf(kSavings, job_->View());
  EXPECT_EQ(json["kind"], "estimated");
  EXPECT_EQ(json["shadow_ranks"], 4);
  EXPECT_TRUE(json["measured"].empty());
  EXPECT_NEAR(json["measured_at_maximum_s"].get<double>(), Plan()->curve->baseline_time_seconds(),
              1e-9);
}

}  // namespace
}  // namespace perseus::server
