// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The life of a job, from its creation to its end.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using store::JobState;

using JobLifeTest = ServiceTest;

TEST_F(JobLifeTest, WithAProfileItRunsOnceAllRanksAreThere) {
  const auto job = Create();
  AwaitRefined(*job);
  EXPECT_EQ(job->View().record.state, JobState::kRegistering);
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(Register(*job, SmallRank(rank)));
  EXPECT_EQ(job->View().record.state, JobState::kRegistering);
  const auto registered = Register(*job, SmallRank(3));
  ASSERT_TRUE(registered);
  EXPECT_GE(*registered, 1);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  const auto plan = job->board().Current();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->version.reason, "target");
  ASSERT_NE(plan->PlanOf(1), nullptr);
  EXPECT_GT(plan->PlanOf(1)->saving_percent, 0);
}

TEST_F(JobLifeTest, TheSameKeyMeansTheSameJob) {
  const auto job = Create();
  EXPECT_EQ(Create(), job);
  EXPECT_NE(Create(kSmallSettings, kSmallProfile, "other"), job);
  // Without a key every one is new.
  EXPECT_NE(Create(kSmallSettings, kSmallProfile, ""), Create(kSmallSettings, kSmallProfile, ""));
  EXPECT_EQ(service_->Jobs().size(), 4);
}

// The job is durable, and so is its work, before its creator has told the server of it: the
// worker that claims it in between must not take it for the work of a deleted job.
TEST_F(JobLifeTest, WorkThatIsClaimedWhileItsJobIsCreatedIsDone) {
  const std::thread::id creator = std::this_thread::get_id();
  std::atomic<bool> is_slow = false;
  ServiceOptions options;
  options.now_seconds = [&] {
    // Longer than the worker's pause. The new job reads the clock.
    if (is_slow && std::this_thread::get_id() == creator) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    }
    return 1000.0;
  };
  Restart(options);
  is_slow = true;
  const auto job = Create();
  is_slow = false;
  AwaitRefined(*job);
  Restart();
}

TEST_F(JobLifeTest, ARankMayRegisterAgain) {
  std::vector<AuditRecord> changes;
  ServiceOptions options;
  options.on_change = [&](const AuditRecord& change) {
    if (change.what != "job") changes.push_back(change);
  };
  Restart(options);
  const auto job = Create();
  RegisterAll(*job);
  RegisterAll(*job);
  store::RankRecord moved = SmallRank(2);
  moved.gpu_uuid = "GPU-other";
  moved.node = "node9";
  ASSERT_TRUE(Register(*job, moved));
  EXPECT_EQ(job->View().ranks_registered, 4);
  EXPECT_EQ(job->KnownRank(2)->node, "node9");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].what, "node of rank 2");
  EXPECT_EQ(changes[0].before, "node1");
  EXPECT_EQ(changes[0].after, "node9");
  service_.reset();
}

TEST_F(JobLifeTest, RanksThatCannotBeAreToldWhy) {
  const auto job = Create();
  const auto error = [&](store::RankRecord rank) {
    const auto registered = Register(*job, rank);
    return registered ? "accepted" : registered.error().message;
  };
  store::RankRecord rank = SmallRank(0);
  rank.rank = -1;
  EXPECT_EQ(error(rank), "rank is -1, but the job has 4 ranks, counted from 0");
  rank = SmallRank(0);
  rank.rank = 4;
  EXPECT_THAT(error(rank), Mentions("rank", "4"));
  rank = SmallRank(0);
  rank.pp_rank = 2;
  EXPECT_THAT(error(rank), Mentions("pp_rank", "2"));
  rank = SmallRank(0);
  rank.tp_rank = 1;
  EXPECT_THAT(error(rank), Mentions("tp_rank", "1"));
  ASSERT_TRUE(Register(*job, SmallRank(0)));
  rank = SmallRank(0);
  rank.rank = 3;
  EXPECT_EQ(error(rank),
            "dp_rank 0, pp_rank 0, tp_rank 0 is the position of rank 0, and cannot be that of rank "
            "3 too");
  rank = SmallRank(1);
  rank.rank = 0;
  EXPECT_THAT(error(rank), Mentions("0", "dp_rank", "pp_rank", "tp_rank"));
  // Nothing of this is kept.
  EXPECT_EQ(job->View().ranks_registered, 1);
  EXPECT_EQ(job->View().missing_ranks, (std::vector<int>{1, 2, 3}));
  RegisterAll(*job);
  EXPECT_TRUE(job->View().missing_ranks.empty());
}

TEST_F(JobLifeTest, RanksThatRaceForAPositionLeaveOne) {
  const auto job = Create();
  std::atomic<int> accepted = 0;
  std::atomic<int> answered = 0;
  for (int rank = 0; rank < 4; ++rank) {
    store::RankRecord same = SmallRank(0);
    same.rank = rank;
    job->Do(RegisterRank{same}, {}, [&](const Outcome<Answer>& outcome) {
      accepted += outcome ? 1 : 0;
      ++answered;
    });
  }
  ASSERT_TRUE(Eventually([&] { return answered == 4; }));
  EXPECT_EQ(accepted, 1);
}

TEST_F(JobLifeTest, WithoutAProfileTheRanksMeasure) {
  const auto job = Create(kUnmeasured, "");
  RegisterAll(*job);
  EXPECT_EQ(job->View().record.state, JobState::kProfiling);
  EXPECT_EQ(job->board().Current(), nullptr);
  for (int rank = 0; rank < 4; ++rank) {
    const auto measured = Measure(*job, Sweep(rank));
    ASSERT_TRUE(measured) << measured.error().message;
  }
  EXPECT_NE(job->View().record.state, JobState::kProfiling);
  AwaitRefined(*job);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_GT(job->board().Current()->PlanOf(0)->saving_percent, 0);
  const auto late = Measure(*job, Sweep(0));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, FailureCode::kConflict);
}

TEST_F(JobLifeTest, ARankThatNeverEndsIsNotWaitedForForEver) {
  const auto job = Create(kUnmeasured, "");
  RegisterAll(*job);
  ASSERT_TRUE(Measure(*job, Sweep(0)));
  ASSERT_TRUE(Measure(*job, Sweep(1)));
  EXPECT_EQ(job->View().record.state, JobState::kProfiling);
  now_ = now_ + kProfileGraceSeconds;
  EXPECT_TRUE(AwaitState(*job, JobState::kRunning));
}

TEST_F(JobLifeTest, MeasurementsThatCannotBeAreToldWhy) {
  const auto job = Create(kUnmeasured, "");
  const auto failure = [&](const store::Measurements& measured) {
    const auto outcome = Measure(*job, measured);
    return outcome ? Failure{.message = "accepted"} : outcome.error();
  };
  EXPECT_THAT(failure(Sweep(0)).message, Mentions("rank", "0"));
  RegisterAll(*job);
  store::Measurements measured = Sweep(0, false);
  measured.rows[1].time_seconds = 0;
  EXPECT_EQ(failure(measured).field, "rows[1].time");
  measured = Sweep(0, false);
  measured.rows[0].energy_joules = -1;
  EXPECT_EQ(failure(measured).field, "rows[0].energy");
  measured = Sweep(0, false);
  measured.blocking_power_watts = -5;
  EXPECT_EQ(failure(measured).field, "blocking_power_w");
  measured = Sweep(0, false);
  measured.rows[2].stage = 2;
  EXPECT_EQ(failure(measured).field, "rows[2].stage");
  EXPECT_EQ(failure(measured).message, "stage of row 2 must be below 2, the stages of the job");
  measured = Sweep(0, false);
  measured.rows[3].type = ComputationType::kBackwardWeight;
  EXPECT_EQ(failure(measured).field, "rows[3].instruction");
}

TEST_F(JobLifeTest, ARankMeasuresSoManyRowsAndNoMore) {
  const auto job = Create(kUnmeasured, "");
  RegisterAll(*job);
  store::Measurements measured = Sweep(0, false);
  measured.rows.resize(kMostMeasuredRows - 5, measured.rows[0]);
  ASSERT_TRUE(Measure(*job, measured));
  const auto more = Measure(*job, Sweep(0, false));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, FailureCode::kTooLarge);
  EXPECT_TRUE(Measure(*job, Sweep(1, false)));
}

TEST_F(JobLifeTest, AJobOfZeusTakesNoMeasurements) {
  const auto spec = MakeJobSpec(kUnmeasured, "");
  ASSERT_TRUE(spec);
  const auto created = sync::Create(*service_, *spec, store::JobOrigin::kZeus);
  ASSERT_TRUE(created);
  RegisterAll(*created->job);
  const auto measured = Measure(*created->job, Sweep(0));
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, FailureCode::kConflict);
}

TEST_F(JobLifeTest, BadDataGetsAReasonAndMaximumClocks) {
  const auto job = Create(kUnmeasured, "");
  RegisterAll(*job);
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    measured.rows.resize(1);  // No backward at all.
    ASSERT_TRUE(Measure(*job, measured));
  }
  EXPECT_TRUE(AwaitState(*job, JobState::kFailed));
  EXPECT_THAT(job->View().record.reason, Mentions("backward"));
  const auto plan = job->board().Current();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->version.reason, "no_plan");
  EXPECT_EQ(plan->PlanOf(0), nullptr);
  EXPECT_THAT(plan->sentence, Mentions("maximum"));
}

TEST_F(JobLifeTest, ForATargetThatCannotBeMetTheFastestRuns) {
  const auto job = Create(
      R"({"schedule":"1f1b","microbatches":4,"data_parallel":2,"blocking_power":20,"at":"0.5x",)"
      R"("effort":0.05})");
  RegisterAll(*job);
  AwaitRefined(*job);
  const JobView view = job->View();
  EXPECT_EQ(view.record.state, JobState::kRunning);
  EXPECT_THAT(view.record.reason, Mentions("0.5x"));
  EXPECT_EQ(view.plan->requested_time_seconds, view.plan->curve->frontier().fastest_seconds);
  ASSERT_TRUE(sync::SetTarget(*job, "1.1x"));
  EXPECT_EQ(job->View().record.reason, "");
}

TEST_F(JobLifeTest, TheLastRecordOfARankThatIsAcknowledgedIsTheOneThatCounts) {
  const auto job = Create();
  RegisterAll(*job);
  store::RankRecord moved = SmallRank(2);
  moved.node = "node9";
  std::atomic<int> answered = 0;
  const auto count = [&](const Outcome<Answer>& outcome) { answered += outcome ? 1 : 0; };
  job->Do(RegisterRank{moved}, {}, count);
  job->Do(RegisterRank{SmallRank(2)}, {}, count);  // Back, before the store has the other.
  ASSERT_TRUE(Eventually([&] { return answered == 2; }));
  EXPECT_EQ(job->KnownRank(2)->node, "node1");
}

TEST_F(JobLifeTest, TheTargetCanBeChanged) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  const std::int64_t before = job->board().Current()->version.version;
  const double energy = job->board().Current()->PlanOf(0)->energy_joules;
  ASSERT_TRUE(sync::SetTarget(*job, "1.2x"));
  // The look-up is there at once; the plan made for it follows.
  EXPECT_GT(job->board().Current()->version.version, before);
  EXPECT_LT(job->board().Current()->PlanOf(0)->energy_joules, energy);
  AwaitRefined(*job);
  const auto plan = job->board().Current();
  EXPECT_DOUBLE_EQ(plan->requested_time_seconds, 1.2 * plan->curve->baseline_time_seconds());
  EXPECT_EQ(job->View().target, "1.2x");

  EXPECT_EQ(sync::SetTarget(*job, "fast").error().field, "at");
  EXPECT_THAT(sync::SetTarget(*job, "0.5x").error().message, Mentions("fastest"));
  EXPECT_EQ(job->View().target, "1.2x");
}

TEST_F(JobLifeTest, ABetterPlanIsANewVersion) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  const auto plan = job->board().Current();
  EXPECT_EQ(plan->version.version, 2);
  EXPECT_EQ(plan->curve->revision(), 2);
}

TEST_F(JobLifeTest, AFinishedJobTellsItsRanks) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(sync::Finish(*job));
  ASSERT_TRUE(sync::Finish(*job));
  EXPECT_EQ(job->View().record.state, JobState::kFinished);
  EXPECT_EQ(job->board().Current()->version.reason, "no_plan");
  EXPECT_THAT(job->board().Current()->sentence, Mentions("finished"));
  EXPECT_EQ(Register(*job, SmallRank(0)).error().code, FailureCode::kConflict);
  EXPECT_EQ(sync::SetTarget(*job, "1.1x").error().code, FailureCode::kConflict);
}

TEST_F(JobLifeTest, ADeletedJobIsGone) {
  const auto job = Create();
  RegisterAll(*job);
  bool told = false;
  AwaitRefined(*job);
  job->board().Wait(job->board().Current()->version.version, 60,
                    [&](const auto& plan) { told = plan->gone; });
  ASSERT_TRUE(sync::Delete(*service_, job->id()));
  EXPECT_TRUE(told);
  EXPECT_EQ(Find(job), nullptr);
  EXPECT_EQ(sync::Delete(*service_, job->id()).error().code, FailureCode::kNotFound);
  EXPECT_EQ(Register(*job, SmallRank(0)).error().code, FailureCode::kNotFound);
  EXPECT_NE(Create()->id(), job->id());
}

TEST_F(JobLifeTest, IterationsAreSummedByVersion) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(
      sync::Report(*job, {{.rank = 0, .plan_version = 2, .time_seconds = 5, .energy_joules = 10},
                          {.rank = 1, .plan_version = 2, .time_seconds = 7}}));
  const auto iterations = job->View().iterations;
  ASSERT_EQ(iterations.size(), 1);
  EXPECT_EQ(iterations[0].reports, 2);
  EXPECT_EQ(iterations[0].total_seconds, 12);
  EXPECT_EQ(iterations[0].least_seconds, 5);
  EXPECT_EQ(iterations[0].most_seconds, 7);
  EXPECT_EQ(iterations[0].total_joules, 10);
  EXPECT_EQ(sync::Report(*job, {{.rank = 9, .time_seconds = 1}}).error().field, "reports[0].rank");
  EXPECT_EQ(sync::Report(*job, {{.rank = 0, .time_seconds = 0}}).error().field,
            "reports[0].time_s");
  EXPECT_EQ(sync::Report(*job, {{.rank = 0, .plan_version = 99, .time_seconds = 1}}).error().field,
            "reports[0].plan_version");
}

TEST_F(JobLifeTest, TheLastWordOfEachClientCounts) {
  const auto job = Create();
  RegisterAll(*job);
  const auto told = std::make_shared<std::vector<std::string>>();
  service_->events().Listen(job->id(), [told](const Event* event) {
    if (event != nullptr && event->name() == "trouble") told->push_back(event->data);
    return true;
  });
  const ClientReport first{.rank = 0, .error = "late", .counts = {{"calls", 5}}};
  const ClientReport second{.rank = 0, .counts = {{"calls", 7}}};
  const ClientReport other{.rank = 1, .error = "no agent", .counts = {{"calls", 1}, {"late", 2}}};
  ASSERT_TRUE(sync::Report(*job, {}, {first, other}));
  EXPECT_EQ(job->View().troubled_clients.size(), 2);
  ASSERT_TRUE(sync::Report(*job, {}, {second, other}));
  service_->events().Settle();
  ASSERT_EQ(told->size(), 2);  // What is repeated is no news.
  EXPECT_NE(told->back().find("no agent"), std::string::npos) << told->back();
  const JobView view = job->View();
  EXPECT_EQ(view.client_counts.at("calls"), 8);
  EXPECT_EQ(view.client_counts.at("late"), 2);
  ASSERT_EQ(view.troubled_clients.size(), 1);
  EXPECT_EQ(view.troubled_clients[0].error, "no agent");
  EXPECT_EQ(sync::Report(*job, {}, {{.rank = 9}}).error().field, "clients[0].rank");
}

TEST_F(JobLifeTest, JobsAreLimited) {
  Restart({.max_jobs = 1});
  Create();
  const auto spec = MakeJobSpec(kSmallSettings, kSmallProfile);
  const auto created = sync::Create(*service_, *spec);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, FailureCode::kTooLarge);
}

}  // namespace
}  // namespace perseus::server
