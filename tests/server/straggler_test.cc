// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "server/api/messages.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

class StragglerTest : public ServiceTest {
 protected:
  StragglerTest() : job_(Create()) {
    RegisterAll(*job_);
    AwaitRefined(*job_);
  }

  std::shared_ptr<const PublishedPlan> Plan() const { return job_->board().Current(); }
  std::int64_t Version() const { return Plan()->version.version; }
  double Requested(int pipeline) const { return Plan()->PlanOf(pipeline)->requested_time_seconds; }
  // Where no plan is faster than maximum clocks, it runs these.
  bool IsAtItsFastest(int pipeline) const {
    const CurvePlan* const plan = Plan()->PlanOf(pipeline);
    return plan == nullptr || plan->requested_time_seconds == Fastest();
  }
  double Fastest() const { return Plan()->curve->fastest().requested_time_seconds; }
  double TStar() const { return Plan()->curve->frontier().tstar_seconds; }

  std::shared_ptr<ManagedJob> job_;
};

TEST_F(StragglerTest, TheOthersSlowDownAndTheStragglerRunsAtItsFastest) {
  const double target = Requested(0);
  const std::int64_t before = Version();
  const auto id = sync::AddStraggler(*job_, {.pipeline = 1, .factor = 1.15});
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(Version(), before + 1);
  EXPECT_EQ(Plan()->version.reason, "straggler");
  EXPECT_GT(Requested(0), target);
  EXPECT_LE(Requested(0), 1.15 * Fastest() + 1e-9);
  EXPECT_EQ(Requested(1), Fastest());
  // The next rung of the ladder would be too slow.
  const auto& plans = Plan()->curve->plans();
  const auto after = std::upper_bound(
      plans.begin(), plans.end(), Requested(0),
      [](double time, const CurvePlan& plan) { return time < plan.requested_time_seconds; });
  ASSERT_NE(after, plans.end());
  EXPECT_GT(after->requested_time_seconds, 1.15 * Fastest());

  ASSERT_TRUE(sync::ClearStraggler(*job_, *id));
  EXPECT_EQ(Version(), before + 2);
  EXPECT_EQ(Plan()->version.reason, "target");
  EXPECT_EQ(Requested(0), target);
  EXPECT_EQ(Requested(1), target);
  EXPECT_EQ(sync::ClearStraggler(*job_, *id).error().code, FailureCode::kNotFound);
}

// What is shown of the job is what all its pipelines do, waiting included.
TEST_F(StragglerTest, TheWholeJobWaitsForTheStraggler) {
  const auto whole = [&] { return JsonOf(kJobSummary, job_->View())["plan"]["whole_job"]; };
  EXPECT_EQ(whole()["straggling"], false);
  EXPECT_EQ(whole()["iteration_time_s"], Plan()->PlanOf(0)->iteration_time_seconds);
  EXPECT_NEAR(whole()["saving_percent"].get<double>(), Plan()->PlanOf(0)->saving_percent, 1e-9);
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 1, .delay_seconds = 100}));
  const double slowed = Fastest() + 100;
  EXPECT_EQ(whole()["straggling"], true);
  EXPECT_NEAR(whole()["iteration_time_s"].get<double>(), slowed, 1e-9);
  // Two pipelines of 40 W in all wait for nearly all of it.
  const double baseline = 2 * (Plan()->curve->baseline_energy_joules() + 40 * 100);
  const double joules = whole()["energy_j"];
  EXPECT_NEAR(whole()["saving_percent"].get<double>(), 100 * (1 - joules / baseline), 1e-6);
  const CurvePlan& other = *Plan()->PlanOf(0);
  const CurvePlan& own = *Plan()->PlanOf(1);
  EXPECT_NEAR(joules,
              other.energy_joules + 40 * (slowed - other.iteration_time_seconds) +
                  own.energy_joules + 40 * 100,
              1e-6);
}

TEST_F(StragglerTest, NobodyIsSlowerThanTStar) {
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 0, .factor = 50}));
  EXPECT_EQ(Requested(1), TStar());
  EXPECT_EQ(Requested(0), Fastest());
}

TEST_F(StragglerTest, ARankSlowsItsPipelineAsItsReplaySays) {
  ASSERT_TRUE(
      sync::AddStraggler(*job_, {.rank = 1, .factor = 1.15}));  // Pipeline 0, the longer stage.
  EXPECT_EQ(Requested(0), Fastest());
  const double slowed = Plan()->curve->SlowedSeconds(&Plan()->curve->fastest(), {1, 1.15});
  EXPECT_LE(Requested(1), slowed);
  EXPECT_GT(Requested(1), Fastest());
  ASSERT_TRUE(sync::ClearStragglers(*job_));
  ASSERT_TRUE(sync::AddStraggler(*job_, {.node = "node1", .delay_seconds = 1}));
  EXPECT_EQ(Requested(1), Fastest());
  EXPECT_LE(Requested(0), Fastest() + 1);
}

// A straggling pipeline is as early as it can be, and nobody is later than it.
TEST_F(StragglerTest, TheStragglerIsAsEarlyAsItCanBe) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> slow(1, 3);
  int at_maximum_clocks = 0;
  for (int round = 0; round < 40; ++round) {
    const std::vector<double> factors = {slow(random), slow(random)};
    ASSERT_TRUE(sync::ClearStragglers(*job_));
    ASSERT_TRUE(sync::AddStraggler(*job_, {.rank = 0, .factor = factors[0]}));
    ASSERT_TRUE(sync::AddStraggler(*job_, {.rank = 1, .factor = factors[1]}));
    const auto plan = Plan();
    const Curve& curve = *plan->curve;
    const double by_plan = curve.SlowedSeconds(&curve.fastest(), factors);
    const double by_clocks = curve.SlowedSeconds(nullptr, factors);
    const double straggler = curve.SlowedSeconds(plan->PlanOf(0), factors);
    EXPECT_LE(straggler, std::min(by_plan, by_clocks) * 1.01);
    EXPECT_LE(plan->PlanOf(1)->iteration_time_seconds, straggler * (1 + 1e-9));
    at_maximum_clocks += plan->PlanOf(0) == nullptr ? 1 : 0;
  }
  EXPECT_GT(at_maximum_clocks, 0);
  EXPECT_LT(at_maximum_clocks, 40);
}

TEST_F(StragglerTest, TheSlowestOfSeveralCounts) {
  ASSERT_TRUE(sync::AddStraggler(*job_, {.rank = 2, .factor = 1.01}));
  ASSERT_TRUE(sync::AddStraggler(*job_, {.rank = 2, .factor = 1.2}));
  ASSERT_TRUE(sync::AddStraggler(*job_, {.rank = 3, .factor = 1.05}));
  // The first stage was not critical, and is now: the fastest plan has slowed it for nothing.
  EXPECT_EQ(Plan()->PlanOf(1), nullptr);
  const double slowed = Plan()->curve->SlowedSeconds(nullptr, {1.2, 1.05});
  EXPECT_LT(slowed, Plan()->curve->SlowedSeconds(&Plan()->curve->fastest(), {1.2, 1.05}));
  EXPECT_EQ(Requested(0), Plan()->curve->At(slowed).requested_time_seconds);
}

TEST_F(StragglerTest, AStragglerInEachPipelineLeavesBothAtTheirFastest) {
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 0, .factor = 1.1}));
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 1, .factor = 1.3}));
  EXPECT_EQ(Requested(0), Fastest());
  EXPECT_EQ(Requested(1), Fastest());
}

TEST_F(StragglerTest, ATargetBeyondTheStragglerStays) {
  ASSERT_TRUE(sync::SetTarget(*job_, "tstar"));
  AwaitRefined(*job_);
  ASSERT_TRUE(sync::AddStraggler(*job_, {.pipeline = 1, .factor = 1.01}));
  EXPECT_EQ(Plan()->version.reason, "target");
  EXPECT_EQ(Requested(0), TStar());
}

TEST_F(StragglerTest, OneThatBeginsLaterAndExpires) {
  const std::int64_t before = Version();
  const double target = Requested(0);
  ASSERT_TRUE(sync::AddStraggler(
      *job_, {.pipeline = 1, .factor = 1.2, .expires_in_seconds = 100, .starts_in_seconds = 50}));
  EXPECT_EQ(Version(), before);
  now_ = now_ + 50;
  ASSERT_TRUE(Eventually([&] { return Version() == before + 1; }));
  EXPECT_GT(Requested(0), target);
  now_ = now_ + 50;
  ASSERT_TRUE(Eventually([&] { return Version() == before + 2; }));
  EXPECT_EQ(Requested(0), target);
  EXPECT_TRUE(job_->View().stragglers.empty());
}

TEST_F(StragglerTest, ARankThatMovesToASlowNodeStraggles) {
  ASSERT_TRUE(sync::AddStraggler(*job_, {.node = "node1", .factor = 1.15}));
  EXPECT_GT(Requested(0), Fastest());
  store::RankRecord moved = SmallRank(0);
  moved.node = "node1";
  ASSERT_TRUE(Register(*job_, moved));
  EXPECT_TRUE(Eventually([&] { return IsAtItsFastest(0); }));
  ASSERT_TRUE(Register(*job_, SmallRank(0)));
  EXPECT_TRUE(Eventually([&] { return !IsAtItsFastest(0); }));
}

TEST_F(StragglerTest, BeforeThereIsACurveItIsRemembered) {
  const auto job = Create(R"({"schedule":"1f1b","microbatches":4,"data_parallel":2,)"
                          R"("blocking_power":20,"at":"fastest","effort":0.05})",
                          kSmallProfile, "second");
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2}));
  RegisterAll(*job);
  AwaitRefined(*job);
  EXPECT_EQ(job->board().Current()->version.reason, "straggler");
}

TEST_F(StragglerTest, WhatCannotBeIsSaid) {
  const auto failure = [&](const AddStraggler& request) {
    const auto added = sync::AddStraggler(*job_, request);
    return added ? "accepted" : added.error().message;
  };
  const std::vector<std::string> not_one = {failure({.factor = 1.2}),
                                            failure({.pipeline = 0, .rank = 0, .factor = 1.2}),
                                            failure({.pipeline = 0})};
  EXPECT_THAT(not_one, ::testing::Each(Mentions("exactly")));
  EXPECT_THAT(failure({.pipeline = 0, .factor = 0.5}), Mentions("expected", "1"));
  EXPECT_THAT(failure({.pipeline = 0, .delay_seconds = -1}), Mentions("above", "0"));
  EXPECT_THAT(failure({.pipeline = 2, .factor = 1.2}), Mentions("2", "pipelines"));
  EXPECT_THAT(failure({.rank = 9, .factor = 1.2}), Mentions("4", "ranks"));
  EXPECT_THAT(failure({.node = "nowhere", .factor = 1.2}), Mentions("nowhere"));
  EXPECT_THAT(failure({.pipeline = 0, .factor = 1.2, .expires_in_seconds = -1}),
              Mentions("expires_s"));
  EXPECT_THAT(failure({.pipeline = 0, .factor = 1.2, .starts_in_seconds = -1}),
              Mentions("starts_s"));
  EXPECT_TRUE(job_->View().stragglers.empty());
}

}  // namespace
}  // namespace perseus::server
