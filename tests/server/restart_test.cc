// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a new process knows of the jobs of the one before.

#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/service_testing.h"

namespace perseus::server {
namespace {

using store::JobState;

using RestartTest = ServiceTest;

TEST_F(RestartTest, ARunningJobHasItsPlanAtOnce) {
  auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2}));
  const auto before = job->board().Current();
  const std::string text = before->curve->RowsTexts(*before->PlanOf(0))[1];
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  ASSERT_NE(job, nullptr);
  const auto after = job->board().Current();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->version.version, before->version.version);
  EXPECT_EQ(after->version.reason, "straggler");
  EXPECT_EQ(after->curve->RowsTexts(*after->PlanOf(0))[1], text);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_EQ(job->View().ranks_registered, 4);
  EXPECT_EQ(job->View().stragglers.size(), 1);
  // Nothing is computed again.
  EXPECT_TRUE(job->View().refined);
  // The next straggler gets a new id, and the key is still taken.
  EXPECT_EQ(*sync::AddStraggler(*job, {.pipeline = 0, .factor = 1.2}), 2);
  EXPECT_EQ(Create(), job);
}

TEST_F(RestartTest, PlansUnderConditionsAreFollowedAndKept) {
  nlohmann::json settings = nlohmann::json::parse(kSmallSettings);
  settings["conditions"] = {{"noise", "1%"}, {"switch_latency", "5ms"}, {"max_changes", 12}};
  auto job = Create(settings.dump());
  RegisterAll(*job);
  AwaitRefined(*job);
  const auto target = job->board().Current();
  const CurvePlan* const plan = target->PlanOf(0);
  ASSERT_NE(plan, nullptr);
  ASSERT_TRUE(plan->expected);
  EXPECT_GT(plan->saving_percent, 0);
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2}));
  const auto before = job->board().Current();
  EXPECT_EQ(before->version.reason, "straggler");
  EXPECT_GT(before->PlanOf(0)->saving_percent, plan->saving_percent);
  // The straggler still ends last, as far as is expected.
  EXPECT_LE(before->PlanOf(0)->iteration_time_seconds, before->straggler_seconds * 1.002);
  const std::string text = before->curve->RowsTexts(*before->PlanOf(0))[1];
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  const auto after = job->board().Current();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->version.version, before->version.version);
  EXPECT_EQ(after->curve->RowsTexts(*after->PlanOf(0))[1], text);
  EXPECT_EQ(after->PlanOf(0)->expected, before->PlanOf(0)->expected);
}

TEST_F(RestartTest, EveryStateGoesOn) {
  auto registering = Create(kSmallSettings, kSmallProfile, "registering");
  ASSERT_TRUE(Register(*registering, SmallRank(2)));
  const char* const unmeasured =
      R"({"schedule":"1f1b","microbatches":4,"stages":2,"data_parallel":2,"blocking_power":20})";
  auto profiling = Create(unmeasured, "", "profiling");
  RegisterAll(*profiling);
  store::Measurements measured{
      .rank = 0,
      .rows = {{.stage = 0, .clock_mhz = 1400, .time_seconds = 1, .energy_joules = 100}},
      .done = true};
  ASSERT_TRUE(Measure(*profiling, measured));
  auto finished = Create(kSmallSettings, kSmallProfile, "finished");
  ASSERT_TRUE(sync::Finish(*finished));
  auto deleted = Create(kSmallSettings, kSmallProfile, "deleted");
  ASSERT_TRUE(sync::Delete(*service_, deleted->id()));

  const std::string ids[] = {registering->id(), profiling->id(), finished->id()};
  registering = profiling = finished = deleted = nullptr;
  Restart();
  EXPECT_EQ(service_->List().size(), 3U);
  registering = sync::Find(*service_, ids[0]);
  EXPECT_EQ(registering->View().ranks_registered, 1);
  RegisterAll(*registering);
  EXPECT_TRUE(AwaitState(*registering, JobState::kRunning));
  profiling = sync::Find(*service_, ids[1]);
  EXPECT_EQ(profiling->View().record.state, JobState::kProfiling);
  EXPECT_EQ(profiling->View().ranks_measured, 1);
  finished = sync::Find(*service_, ids[2]);
  EXPECT_EQ(finished->View().record.state, JobState::kFinished);
  ASSERT_NE(finished->board().Current(), nullptr);
  EXPECT_EQ(finished->board().Current()->version.reason, "no_plan");
}

TEST_F(RestartTest, ACurveThatIsLostIsComputedAgain) {
  auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  const std::int64_t version = job->board().Current()->version.version;
  const std::string id = job->id();
  job.reset();
  service_.reset();
  soci::session(soci::sqlite3, "dbname=" + directory_.Path("store.sqlite")) << "DELETE FROM curves";
  Start();
  job = sync::Find(*service_, id);
  AwaitRefined(*job);
  // Ranks that hold the old version hear of a later one.
  EXPECT_GT(job->board().Current()->version.version, version);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
}

// Its key is free again then, and nobody asks for its plans meanwhile.
TEST_F(RestartTest, ADamagedJobIsDeletedWithoutBeingRead) {
  const std::string id = Create()->id();
  service_.reset();
  soci::session(soci::sqlite3, "dbname=" + directory_.Path("store.sqlite"))
      << "UPDATE jobs SET target = 'soon'";
  std::atomic<int> problems = 0;
  std::vector<AuditRecord> changes;
  ServiceOptions options;
  options.on_problem = [&](const std::string&) { ++problems; };
  options.on_change = [&](const AuditRecord& change) { changes.push_back(change); };
  Start(options);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(sync::Get(*service_, id).error().code, FailureCode::kInvalid);
  EXPECT_EQ(service_->damaged_jobs(), 1U);
  EXPECT_EQ(problems, 1);
  const auto remove = [&](Caller caller) {
    return Await<Outcome<void>>(
        [&](auto&& deleted) { service_->DeleteDamaged(id, caller, deleted); });
  };
  const std::int64_t revision = service_->HeadOf(id)->revision;
  EXPECT_EQ(remove({.if_revision = revision + 7}).error().code, FailureCode::kPast);
  ASSERT_TRUE(remove({.token_name = "alice", .if_revision = revision}));
  EXPECT_EQ(service_->damaged_jobs(), 0U);
  EXPECT_EQ(sync::Get(*service_, id).error().code, FailureCode::kNotFound);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].before, "damaged");
  EXPECT_EQ(changes[0].token_name, "alice");
  EXPECT_NE(Create()->id(), id);
}

TEST_F(RestartTest, SummariesOfIterationsArePartOfIt) {
  auto job = Create();
  RegisterAll(*job);
  ASSERT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = 0, .time_seconds = 5}}));
  const std::string id = job->id();
  sync::Tick(*job);
  job.reset();
  Restart();
  ASSERT_EQ(sync::Find(*service_, id)->View().iterations.size(), 1);
  EXPECT_EQ(sync::Find(*service_, id)->View().iterations[0].total_seconds, 5);
}

TEST_F(RestartTest, WhatWasReportedLastIsWrittenAtTheEnd) {
  auto job = Create();
  RegisterAll(*job);
  ASSERT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = 0, .time_seconds = 5}}));
  sync::Tick(*job);
  // Within the second that the next write waits for.
  ASSERT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = 0, .time_seconds = 7}}));
  const std::string id = job->id();
  job.reset();
  Restart();
  ASSERT_EQ(sync::Find(*service_, id)->View().iterations.size(), 1);
  EXPECT_EQ(sync::Find(*service_, id)->View().iterations[0].total_seconds, 12);
}

TEST_F(RestartTest, ATargetThatNothingMeetsKeepsItsReason) {
  auto job = Create(
      R"({"schedule":"1f1b","microbatches":4,"data_parallel":2,"blocking_power":20,"at":"0.5x",)"
      R"("effort":0.05})");
  RegisterAll(*job);
  AwaitRefined(*job);
  const std::string reason = job->View().record.reason;
  EXPECT_NE(reason, "");
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_EQ(job->View().record.reason, reason);
}

TEST_F(RestartTest, AStragglerThatExpiredMeanwhileIsGone) {
  auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2, .expires_in_seconds = 10}));
  const std::string id = job->id();
  job.reset();
  now_ = now_ + 20;
  Restart();
  job = sync::Find(*service_, id);
  EXPECT_TRUE(Eventually([&] { return job->View().stragglers.empty(); }));
  EXPECT_TRUE(Eventually([&] { return job->board().Current()->version.reason == "target"; }));
}

// Whoever loads a job can show them at once.
TEST_F(RestartTest, NotesOnAGivenProfileNeedNoPlan) {
  const std::string id = Create()->id();
  const std::size_t notes = sync::Find(*service_, id)->View().notes.size();
  service_.reset();
  {
    soci::session sql(soci::sqlite3, "dbname=" + directory_.Path("store.sqlite"));
    sql << "DELETE FROM curves";
  }
  const auto store = store::Store::Open("sqlite:" + directory_.Path("store.sqlite"));
  ASSERT_TRUE(store) << store.error().message;
  const auto loaded = LoadJobLife(**store, id);
  ASSERT_TRUE(loaded && loaded->has_value());
  const Built& built = (*loaded)->life.phase.built;
  EXPECT_EQ(built.curve, nullptr);
  ASSERT_NE(built.job, nullptr);
  EXPECT_EQ(built.job->notes.size(), notes);
  EXPECT_GT(notes, 0U);
}

}  // namespace
}  // namespace perseus::server
