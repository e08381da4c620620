// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a server reads when it starts, also where a job is damaged; and what of a
// job is kept.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/boot_clock.h"
#include "common/temporary_directory.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;

class HeadsTest : public AnyStoreTest {};
INSTANTIATE_TEST_SUITE_P(On, HeadsTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(HeadsTest, AHeadSaysWhatTheJobSays) {
  const auto store = Open();
  JobRecord later = SampleJob("a");
  later.created_at_seconds += 1;
  later.name = "the later one";
  ASSERT_TRUE(store->Write({later}));
  ASSERT_TRUE(store->Write({SampleJob("b")}));
  ASSERT_TRUE(
      store->Write({StateChange{.job = "a", .state = JobState::kFinished, .at_seconds = 1.8e9}}));
  const auto heads = store->ListHeads();
  ASSERT_TRUE(heads) << heads.error().message;
  ASSERT_EQ(heads->size(), 2);
  EXPECT_EQ((*heads)[0].id, "b");
  EXPECT_EQ((*heads)[0].state, JobState::kRegistering);
  EXPECT_EQ((*heads)[0].finished_at_seconds, 0);
  const JobHead& head = (*heads)[1];
  const StoredJob job = JobOrThrow(*store, "a");
  EXPECT_EQ(head.client_key, job.job.client_key);
  EXPECT_EQ(head.name, "the later one");
  EXPECT_EQ(head.labels, SampleJob("a").labels);
  EXPECT_EQ(head.origin, JobOrigin::kZeus);
  EXPECT_EQ(head.state, JobState::kFinished);
  EXPECT_EQ(head.created_at_seconds, 1.7e9 + 1);
  EXPECT_EQ(head.finished_at_seconds, 1.8e9);
  EXPECT_EQ(head.marks, job.marks);
  EXPECT_EQ(job.job.finished_at_seconds, 1.8e9);
}

TEST_P(HeadsTest, AJobIsFinishedSinceItFirstWas) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  const auto change = [&](JobState state, double at) {
    ASSERT_TRUE(store->Write({StateChange{.job = "a", .state = state, .at_seconds = at}}));
  };
  change(JobState::kRunning, 5);
  EXPECT_EQ(JobOrThrow(*store, "a").job.finished_at_seconds, 0);
  change(JobState::kFinished, 6);
  change(JobState::kFinished, 7);
  EXPECT_EQ(JobOrThrow(*store, "a").job.finished_at_seconds, 6);
  change(JobState::kRunning, 8);
  EXPECT_EQ(JobOrThrow(*store, "a").job.finished_at_seconds, 0);
}

TEST_P(HeadsTest, OfAllVersionsTheNewestAreKeptAndOfIterationsAllSums) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  ASSERT_TRUE(store->Write({SampleJob("b"), PlanVersion{.job = "b", .version = 1}}));
  // Not every number is given. In parts: all in one transaction, of which each may take 5 s, take
  // that long on PostgreSQL when the machine is busy.
  constexpr std::size_t kPart = 100;
  std::vector<Fact> facts;
  for (int version = 1; version <= kMostStoredVersions + 5; ++version) {
    facts.push_back(PlanVersion{.job = "a", .version = 2 * version});
    facts.push_back(IterationSummary{.job = "a", .plan_version = 2 * version, .reports = 1});
    if (facts.size() < kPart && version < kMostStoredVersions + 5) continue;
    const auto written = store->Write(std::exchange(facts, {}));
    ASSERT_TRUE(written) << written.error().message;
  }
  const StoredJob job = JobOrThrow(*store, "a");
  EXPECT_EQ(job.version->version, 2 * (kMostStoredVersions + 5));
  EXPECT_EQ(job.iterations_here.size(), kMostStoredVersions + 5);
  EXPECT_TRUE(JobOrThrow(*store, "b").version);
  const std::string query = "SELECT COUNT(*) || ' ' || MIN(version) FROM versions WHERE job = 'a'";
  std::string counted;
  if (GetParam() == Kind::kSqlite) {
    soci::session(soci::sqlite3, "dbname=\"" + spec_.substr(7) + "\"") << query,
        soci::into(counted);
  } else {
    counted = SharedPostgres().Ask(query, DatabaseName());
  }
  EXPECT_EQ(counted, fmt::format("{} 12", kMostStoredVersions));
}

TEST_P(HeadsTest, AChangeWhoseDeadlineIsPastIsRefused) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  const auto late = store->Write({TargetChange{"a", "1.1x"}}, std::nullopt, BootClock::now());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, kTooLate);
  EXPECT_THAT(late.error().message, AllOf(Mentions("a", "late"), Mentions("written")));
  EXPECT_FALSE(store->counters().is_failing);
  EXPECT_TRUE(store->Write({TargetChange{"a", "1.2x"}}, std::nullopt,
                           BootClock::now() + std::chrono::minutes(1)));
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, "1.2x");
  EXPECT_EQ(JobOrThrow(*store, "a").marks.revision, 2);
}

// Its client goes while the job's row is locked. Nothing was written, and the marks do not say so.
TEST_P(HeadsTest, AChangeThatIsFoundLateLeavesTheMarksAsTheyWere) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  const JobMarks before = JobOrThrow(*store, "a").marks;
  int looks = 0;
  std::promise<Result<JobMarks>> late;
  store->Add(
      {TargetChange{"a", "1.1x"}},
      [&](const Result<JobMarks>& written) { late.set_value(written); }, before.revision,
      [&] { return ++looks == 1; });
  const Result<JobMarks> answer = late.get_future().get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, kTooLate) << answer.error().message;
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(JobOrThrow(*store, "a").marks, before);
  EXPECT_TRUE(store->Write({TargetChange{"a", "1.2x"}}, before.revision));
}

// Its client goes while the row is being written.
TEST_P(HeadsTest, AJobWhoseClientIsGoneIsNotThere) {
  const auto store = Open();
  const auto create = [&](std::function<bool()> is_wanted) {
    // Shared: the store's thread may still be in it when its value is read.
    const auto promise = std::make_shared<std::promise<Result<JobMarks>>>();
    std::future<Result<JobMarks>> future = promise->get_future();
    store->Add(
        {SampleJob("a"), WorkWanted{.job = "a"}},
        [promise](const Result<JobMarks>& written) { promise->set_value(written); }, std::nullopt,
        std::move(is_wanted));
    return future.get();
  };
  int looks = 0;
  const auto late = create([&] { return ++looks == 1; });
  EXPECT_EQ(looks, 2);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, kTooLate);
  EXPECT_EQ(store->ListHeads()->size(), 0);
  EXPECT_EQ(store->ListHeads()->size(), 0);
  EXPECT_EQ(*store->ClaimWork(60), std::nullopt);
  // Its id and its key are free.
  EXPECT_TRUE(create({}));
}

class DamageTest : public ::testing::Test {
 protected:
  void Damage(const std::string& sql) const {
    soci::session(soci::sqlite3, "dbname=" + file_) << sql;
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
  std::vector<std::string> told_;
  std::unique_ptr<Store> store_ = *Store::Open(
      "sqlite:" + file_, [this](const std::string& sentence) { told_.push_back(sentence); });
};

TEST_F(DamageTest, OneDamagedCellSetsOneJobAside) {
  for (const char* const job : {"a", "b", "c"}) ASSERT_TRUE(store_->Write(SampleFacts(job)));
  Damage("UPDATE plans SET knobs = '!!' WHERE job = 'b'");
  const auto b = store_->LoadJob("b");
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, kDamaged);
  EXPECT_THAT(b.error().message, Mentions("b", "damaged:", "plans"));
  EXPECT_THAT(b.error().message, Mentions("restore"));
  EXPECT_TRUE(store_->LoadJob("b", Parts::kPhase));
  EXPECT_TRUE(store_->LoadJob("c"));
  // It can still be deleted.
  EXPECT_TRUE(store_->Write({JobGone{"b"}}));
  EXPECT_EQ(store_->ListHeads()->size(), 2);
}

TEST_F(DamageTest, ADamagedHeadIsLeftOutAndTold) {
  for (const char* const job : {"a", "b", "c"}) ASSERT_TRUE(store_->Write(SampleFacts(job)));
  Damage("UPDATE jobs SET state = 'dancing' WHERE id = 'a'");
  Damage("UPDATE jobs SET origin = 7 WHERE id = 'c'");
  const auto heads = store_->ListHeads();
  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->size(), 1);
  EXPECT_EQ(heads->front().id, "b");
  EXPECT_THAT(told_, ElementsAre(Mentions("a", "damaged:"), Mentions("c", "damaged:")));
  EXPECT_EQ(store_->LoadJob("c").error().code, kDamaged);
}

TEST_F(DamageTest, ATargetThatNobodyCanReadSetsItsJobAside) {
  for (const char* const job : {"a", "b"}) ASSERT_TRUE(store_->Write(SampleFacts(job)));
  Damage("UPDATE jobs SET target = '1.1' WHERE id = 'a'");
  EXPECT_EQ(store_->LoadJob("a").error().code, kDamaged);
  EXPECT_EQ(store_->LoadJob("a", Parts::kPhase).error().code, kDamaged);
  EXPECT_THAT(store_->LoadJob("a").error().message, Mentions("a", "damaged:", "jobs"));
  // A job without one goes by its settings.
  Damage("UPDATE jobs SET target = '' WHERE id = 'a'");
  EXPECT_TRUE(store_->LoadJob("a"));
}

// What is behind a long text in a row is found without reading the text.
TEST_F(DamageTest, ListsAreReadByAnIndexInOrder) {
  std::string plan;
  soci::session sql(soci::sqlite3, "dbname=" + file_);
  const soci::rowset<soci::row> rows =
      (sql.prepare << "EXPLAIN QUERY PLAN SELECT j.id, j.name, j.state, j.created_at, "
                      "j.finished_at, m.revision FROM jobs j CROSS JOIN marks m "
                      "WHERE m.job = j.id ORDER BY j.created_at, j.id");
  for (const soci::row& row : rows) plan += row.get<std::string>(3) + "\n";
  EXPECT_THAT(plan, Mentions("SCAN", "USING", "INDEX", "jobs_by_age"));
}

}  // namespace
}  // namespace perseus::store
