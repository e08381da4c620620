// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What is acknowledged at one server holds at the other at once; what the other
// shows or tells its ranks follows soon, and never goes back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "http/client.h"
#include "http/server.h"
#include "server/api/api.h"
#include "server/servers_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using store::JobState;

TEST_F(ServersTest, RanksJoinAtEitherServer) {
  MakeRunning();
  EXPECT_TRUE(AgreesOn(2));  // The first plan and its better one: each was made once.
  for (const auto& job : jobs_) {
    EXPECT_EQ(job->Ranks().size(), 4);
    EXPECT_EQ(job->View().ranks_registered, 4);
  }
}

TEST_F(ServersTest, ADamagedJobIsDeletedAtAnyServer) {
  const auto created = CreateAt(1, kSmallSettings, kSmallProfile, "damaged");
  ASSERT_TRUE(created);
  const std::string id = created->job->id();
  // A server that begins now cannot read it; the other one has it.
  services_[0].reset();
  postgres_->Run("UPDATE jobs SET target = 'soon'", database_);
  int problems = 0;
  Start(0, [&](const std::string&) { ++problems; });
  EXPECT_EQ(sync::Get(*services_[0], id).error().code, FailureCode::kInvalid);
  const auto deleted =
      Await<Outcome<void>>([&](auto&& done) { services_[0]->DeleteDamaged(id, {}, done); });
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(sync::Get(*services_[0], id).error().code, FailureCode::kNotFound);
  EXPECT_TRUE(Eventually([&] { return created->job->is_gone(); }));
  EXPECT_EQ(problems, 1);
}

TEST_F(ServersTest, BothServeTheSamePlan) {
  MakeRunning();
  ASSERT_TRUE(sync::AddStraggler(*jobs_[0], {.pipeline = 1, .factor = 1.2}));
  ASSERT_TRUE(AgreesOn(3));
  const auto here = jobs_[0]->board().Current();
  const auto there = jobs_[1]->board().Current();
  EXPECT_EQ(there->version.reason, "straggler");
  for (int pipeline = 0; pipeline < 2; ++pipeline) {
    const CurvePlan* const plan = here->PlanOf(pipeline);
    const CurvePlan* const same = there->PlanOf(pipeline);
    ASSERT_EQ(plan == nullptr, same == nullptr);
    if (plan == nullptr) continue;
    EXPECT_EQ(plan->knobs, same->knobs);
  }
}

TEST_F(ServersTest, AFinishedOrDeletedJobIsSoEverywhere) {
  MakeRunning();
  ASSERT_TRUE(sync::Finish(*jobs_[0]));
  EXPECT_EQ(sync::SetTarget(*jobs_[1], "1.1x").error().code, FailureCode::kConflict);
  EXPECT_EQ(jobs_[1]->View().record.state, JobState::kFinished);
  EXPECT_EQ(jobs_[1]->board().Current()->version.reason, "no_plan");
  std::atomic<bool> told = false;
  jobs_[1]->AwaitPlan(VersionOf(*jobs_[1]), 60, [&](const auto& plan) { told = plan->gone; });
  const std::string id = jobs_[0]->id();
  ASSERT_TRUE(sync::Delete(*services_[0], id));
  EXPECT_EQ(sync::GetFresh(*services_[1], id).error().code, FailureCode::kNotFound);
  EXPECT_TRUE(Eventually([&] { return told.load(); }));
  EXPECT_TRUE(Eventually([&] { return services_[1]->Jobs().empty(); }));
  // Its key is free, everywhere.
  const auto created = CreateAt(1, kSmallSettings, kSmallProfile, "key");
  ASSERT_TRUE(created);
  EXPECT_TRUE(created->is_new);
}

TEST_F(ServersTest, IterationsAreSummedOverServers) {
  MakeRunning();
  ASSERT_TRUE(sync::Report(*jobs_[0], {{.rank = 0, .plan_version = 2, .time_seconds = 5}}));
  ASSERT_TRUE(sync::Report(*jobs_[1], {{.rank = 1, .plan_version = 2, .time_seconds = 7}}));
  for (const auto& service : services_) {
    EXPECT_TRUE(Eventually([&] {
      now_[0] = now_[0] + 2;
      now_[1] = now_[1] + 2;
      const auto iterations = sync::GetFresh(*service, jobs_[0]->id()).value()->View().iterations;
      return iterations.size() == 1 && iterations[0].reports == 2 &&
             iterations[0].total_seconds == 12 && iterations[0].least_seconds == 5 &&
             iterations[0].most_seconds == 7;
    }));
  }
  // A version that only the other server has heard of so far.
  ASSERT_TRUE(sync::AddStraggler(*jobs_[0], {.pipeline = 1, .factor = 1.2}));
  EXPECT_TRUE(sync::Report(*jobs_[1], {{.rank = 1, .plan_version = 3, .time_seconds = 7}}));
  EXPECT_EQ(
      sync::Report(*jobs_[1], {{.rank = 1, .plan_version = 9, .time_seconds = 7}}).error().field,
      "reports[0].plan_version");
}

// Whose ranks only the other hears.
TEST_F(ServersTest, AServerDoesNotEndAJobThatIsAliveAtAnother) {
  MakeRunning();
  constexpr double kSilent = 5000;
  const auto report = [&] {
    ASSERT_TRUE(sync::Report(*jobs_[0], {{.rank = 0, .plan_version = 0, .time_seconds = 1}}));
    now_[0] = now_[0] + 10;  // For the sums to be written.
    sync::Tick(*jobs_[0]);
  };
  const auto reports = [&] {
    const auto iterations = sync::GetFresh(*services_[1], jobs_[1]->id());
    return iterations && !(*iterations)->View().iterations.empty();
  };
  report();
  now_[1] = now_[1] + 2 * kSilent;
  ASSERT_TRUE(Eventually([&] {
    now_[1] = now_[1] + 2;
    return reports();
  }));
  jobs_[1]->FinishIfSilent(kSilent);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(jobs_[1]->is_finished());
  now_[1] = now_[1] + 2 * kSilent;
  EXPECT_TRUE(Eventually([&] {
    jobs_[1]->FinishIfSilent(kSilent);
    return jobs_[1]->is_finished();
  }));
}

// However many wait before it, and although nothing comes back.
TEST_F(ServersTest, ALookAtAJobHasABoundOfItsOwn) {
  const auto job = Create();
  http::ServerOptions http;
  http.listen = "127.0.0.1:0";
  auto server = http::Server::Open(http, ApiRoutes(*services_[0]));
  ASSERT_TRUE(server) << server.error().message;
  (*server)->Serve();
  http::ClientOptions to;
  to.url = (*server)->url();
  auto client = http::Client::Create(to);
  ASSERT_TRUE(client);
  std::promise<void> go;
  const std::shared_future<void> may_go = go.get_future().share();
  for (int i = 0; i < 8; ++i) services_[0]->OnReader([may_go] { may_go.wait(); });
  const auto answer = client->Call("GET", "/api/v1/jobs/" + job->id());
  EXPECT_TRUE(answer && answer->status == 503);
  // The store is not asked for those who have left.
  std::atomic<int> looks = 0;
  const auto is_gone = [&] { return ++looks < 0; };
  std::promise<bool> listed;
  services_[0]->List(is_gone, [&](const auto&, bool is_stale) { listed.set_value(is_stale); });
  const auto found = std::make_shared<std::promise<FailureCode>>();
  services_[0]->GetByKey("none", is_gone,
                         [found](const auto& none) { found->set_value(none.error().code); });
  go.set_value();
  EXPECT_TRUE(listed.get_future().get());
  EXPECT_EQ(found->get_future().get(), FailureCode::kUnavailable);
  EXPECT_EQ(looks, 2);
  (*server)->Stop(0);
}

}  // namespace
}  // namespace perseus::server
