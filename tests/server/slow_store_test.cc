// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A disk that takes seconds delays those who change something, and nobody else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/waiting.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using SlowStoreTest = ServiceTest;

// Commits wait while it is there.
class SlowDisk {
 public:
  explicit SlowDisk(const std::string& path)
      : sql_(soci::sqlite3, "dbname=\"" + path + "\" timeout=60") {
    sql_ << "BEGIN IMMEDIATE";
  }
  ~SlowDisk() { sql_ << "ROLLBACK"; }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

 private:
  soci::session sql_;
};

TEST_F(SlowStoreTest, NobodyWhoReadsWaitsForACommit) {
  const auto job = Create();
  const auto other = Create(kSmallSettings, kSmallProfile, "other");
  RegisterAll(*job);
  AwaitRefined(*job);
  AwaitRefined(*other);
  const std::int64_t version = job->board().version();
  std::promise<Outcome<Answer>> answered;
  std::atomic<bool> is_answered = false;
  {
    const SlowDisk disk(directory_.Path("store.sqlite"));
    job->Do(SetTarget{"1.2x"}, {}, [&](const Outcome<Answer>& answer) {
      is_answered = true;
      answered.set_value(answer);
    });
    // All of these come back although the commit does not: a wait would never end.
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(job->board().version(), version);
      EXPECT_EQ(job->View().target, "1.0x");
      EXPECT_TRUE(job->PlaceOf(1));
      EXPECT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = version, .time_seconds = 1}}));
      EXPECT_EQ(other->View().ranks_registered, 0);
      EXPECT_EQ(service_->Jobs().size(), 2U);
      job->Tick();
    }
    // Another change of the same job is taken, and waits its turn.
    EXPECT_FALSE(is_answered);
  }
  const Outcome<Answer> answer = answered.get_future().get();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(job->View().target, "1.2x");
}

// Durations go by a clock that nobody sets: what was acknowledged is written although the time of
// day went back.
TEST_F(SlowStoreTest, AClockThatIsSetBackDelaysNoWrite) {
  std::atomic<double> steady = 50;
  ServiceOptions options;
  options.steady_seconds = [&] { return steady.load(); };
  Restart(options);
  const auto job = Create();
  RegisterAll(*job);
  ASSERT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = 0, .time_seconds = 5}}));
  sync::Tick(*job);
  now_ = now_ - 3600;
  ASSERT_TRUE(sync::Report(*job, {{.rank = 0, .plan_version = 0, .time_seconds = 7}}));
  steady = steady + 2;
  const auto reports = [&] {
    int sum = 0;
    soci::session(soci::sqlite3, "dbname=" + directory_.Path("store.sqlite"))
        << "SELECT COALESCE(SUM(reports), 0) FROM iterations",
        soci::into(sum);
    return sum;
  };
  EXPECT_TRUE(Eventually([&] { return reports() == 2; }));
  service_.reset();
}

TEST_F(SlowStoreTest, FinishedJobsDoNotCountAgainstTheLimit) {
  ServiceOptions options;
  options.max_jobs = 1;
  Restart(options);
  const auto first = Create(kSmallSettings, kSmallProfile, "first");
  const Outcome<JobSpec> spec = MakeJobSpec(kSmallSettings, kSmallProfile);
  EXPECT_EQ(sync::Create(*service_, *spec).error().code, FailureCode::kTooLarge);
  ASSERT_TRUE(sync::Finish(*first));
  EXPECT_TRUE(sync::Create(*service_, *spec));
}

// The store's last answers, of a change whose client went away, come while the server ends.
TEST_F(SlowStoreTest, AChangeThatIsRefusedWhileTheServerEndsDoesNoHarm) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  const auto looks = std::make_shared<std::atomic<int>>(0);
  const auto is_wanted = [looks] {
    if (++*looks == 1) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return false;
  };
  std::atomic<bool> is_refused = false;
  job->Do(SetTarget{"1.2x"}, {.is_wanted = is_wanted},
          [&](const Outcome<Answer>& answer) { is_refused = !answer; });
  ASSERT_TRUE(Eventually([&] { return *looks == 2; }));
  service_.reset();
  EXPECT_TRUE(is_refused);
}

TEST_F(SlowStoreTest, AJobWhoseClientIsGoneIsNotMade) {
  const Outcome<JobSpec> spec = MakeJobSpec(kSmallSettings, kSmallProfile);
  const auto created = Await<Outcome<JobService::Created>>([&](auto&& done) {
    service_->Create(*spec, store::JobOrigin::kApi, {.is_wanted = [] { return false; }}, done);
  });
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, FailureCode::kUnavailable);
  EXPECT_EQ(service_->unfinished_jobs(), 0);
  Restart();
  EXPECT_EQ(service_->unfinished_jobs(), 0);
}

TEST_F(SlowStoreTest, FinishedJobsAreDeletedOnceTheyWereKeptLongEnough) {
  std::mutex mutex;
  std::vector<AuditRecord> changes;
  ServiceOptions options;
  options.keep_finished_seconds = 5000;
  options.on_change = [&](const AuditRecord& change) {
    const std::lock_guard lock(mutex);
    if (change.after == "deleted") changes.push_back(change);
  };
  Restart(options);
  const std::string kept = Create(kSmallSettings, kSmallProfile, "kept")->id();
  const std::string id = Create()->id();
  ASSERT_TRUE(sync::Finish(*sync::Find(*service_, id)));  // At 1,000 s.
  EXPECT_TRUE(Eventually([&] {
    now_ = std::min(now_ + 100, 5900.0);
    return service_->Jobs().size() == 1;
  }));
  EXPECT_TRUE(service_->HeadOf(id));
  EXPECT_TRUE(Eventually([&] {
    now_ = now_ + 100;
    return !service_->HeadOf(id);
  }));
  EXPECT_TRUE(service_->HeadOf(kept));
  EXPECT_EQ(sync::Get(*service_, id).error().code, FailureCode::kNotFound);
  service_.reset();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].token_name, "--keep-finished");
}

// Of which no rank has spoken for long.
TEST_F(SlowStoreTest, AJobWhoseRanksAreGoneFinishes) {
  ServiceOptions options;
  options.finish_silent_seconds = 5000;
  Restart(options);
  const auto gone = Create();
  const auto heard = Create(kSmallSettings, kSmallProfile, "heard");
  const auto asks = Create(kSmallSettings, kSmallProfile, "asks");
  const auto empty = Create(kSmallSettings, kSmallProfile, "empty");
  const auto zeus =
      sync::Create(*service_, *MakeJobSpec(kUnmeasured, ""), store::JobOrigin::kZeus)->job;
  for (const auto& job : {gone, heard, asks, zeus}) RegisterAll(*job);
  for (const auto& job : {gone, heard, asks}) AwaitRefined(*job);
  const double since = now_;
  EXPECT_TRUE(Eventually([&] {
    now_ = std::min(now_ + 100, since + 20'000);
    EXPECT_TRUE(sync::Report(*heard, {{.rank = 0, .plan_version = 0, .time_seconds = 1}}));
    asks->AwaitPlan(0, 0, [](const auto&) {});
    return gone->is_finished();
  }));
  EXPECT_GT(now_ - since, 5000);
  EXPECT_TRUE(gone->has_ended_itself());
  EXPECT_THAT(gone->View().record.reason, Mentions("5000", "--finish-silent"));
  for (const auto& job : {heard, asks, empty, zeus}) EXPECT_FALSE(job->is_finished());
  ASSERT_TRUE(sync::Finish(*heard));
  EXPECT_FALSE(heard->has_ended_itself());
}

TEST_F(SlowStoreTest, AFinishedJobLeavesTheMemoryWhenNobodyHasIt) {
  auto job = Create();
  const std::string id = job->id();
  RegisterAll(*job);
  ASSERT_TRUE(sync::Finish(*job));
  const auto is_at_rest = [&] { return service_->Jobs().empty(); };
  now_ = now_ + 700;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_at_rest());  // The test has it.
  job.reset();
  EXPECT_TRUE(Eventually([&] {
    now_ = now_ + 100;
    return is_at_rest();
  }));
  EXPECT_EQ(service_->HeadOf(id)->state, store::JobState::kFinished);
  EXPECT_EQ(sync::Find(*service_, id)->View().ranks_registered, 4);
}

// A write of sums replaces what this process wrote before, also what it wrote before the rest.
TEST_F(SlowStoreTest, ReportsBeforeAndAfterARestOfTheirJobAreCountedTogether) {
  auto job = Create();
  const std::string id = job->id();
  RegisterAll(*job);
  const std::vector<IterationReport> report = {
      {.rank = 0, .plan_version = 0, .time_seconds = 1.5, .clocks = ReportedClocks::kMaximum}};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sync::Report(*job, report));
  ASSERT_TRUE(sync::Finish(*job));
  job.reset();
  ASSERT_TRUE(Eventually([&] {
    now_ = now_ + 700;
    return service_->Jobs().empty();
  }));
  job = sync::Find(*service_, id);
  ASSERT_EQ(job->View().iterations.size(), 1U);
  EXPECT_EQ(job->View().iterations[0].reports, 3);
  ASSERT_TRUE(sync::Report(*job, report));
  job.reset();
  Restart();
  const auto iterations = sync::Find(*service_, id)->View().iterations;
  ASSERT_EQ(iterations.size(), 1U);
  EXPECT_EQ(iterations[0].reports, 4);
  EXPECT_EQ(iterations[0].total_seconds, 6);
}

// Those who wait for one reading of a job are told each by itself.
TEST_F(SlowStoreTest, AnAnswerThatThrowsKeepsNobodyElseFromTheirs) {
  std::string id;
  {
    const auto job = Create();
    id = job->id();
    ASSERT_TRUE(sync::Finish(*job));
  }
  Restart();
  std::promise<void> go;
  const std::shared_future<void> may_go = go.get_future().share();
  // No reading begins until both have asked.
  for (int i = 0; i < 8; ++i) service_->OnReader([may_go] { may_go.wait(); });
  const auto found = std::make_shared<std::promise<bool>>();
  service_->Get(id, [](const auto&) { throw std::runtime_error("an answer"); });
  service_->Get(id, [found](const auto& job) { found->set_value(job.has_value()); });
  auto is_found = found->get_future();
  go.set_value();
  ASSERT_EQ(is_found.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(is_found.get());
}

// Clients that go on asking for it do not keep it.
TEST_F(SlowStoreTest, AnOldFinishedJobIsDeletedAlthoughItIsAskedFor) {
  ServiceOptions options;
  options.keep_finished_seconds = 1000;
  Restart(options);
  const auto job = Create();
  RegisterAll(*job);
  ASSERT_TRUE(sync::Finish(*job));
  double waited = 0;
  EXPECT_TRUE(Eventually([&] {
    now_ = now_ + 100;
    waited += 100;
    static_cast<void>(sync::Get(*service_, job->id()));
    return job->is_gone();
  }));
  EXPECT_GT(waited, 1000);
  EXPECT_FALSE(service_->HeadOf(job->id()));
}

}  // namespace
}  // namespace perseus::server
