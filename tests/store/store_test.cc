// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/clocks.h"
#include "common/temporary_directory.h"
#include "server/store/cells.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

namespace perseus::store {

namespace {

using StoreTest = AnyStoreTest;
INSTANTIATE_TEST_SUITE_P(On, StoreTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgresql, Kind::kPgBouncer),
                         KindName);

TEST_P(StoreTest, EveryFactIsThereAfterItWasClosed) {
  std::string before;
  {
    const auto store = Open();
    for (const Fact& fact : SampleFacts("a")) ASSERT_TRUE(store->Write({fact}));
    ASSERT_TRUE(store->Write(SampleFacts("b")));
    before = Described(*store);
  }
  EXPECT_EQ(Described(*Open()), before);
  EXPECT_EQ(before.substr(0, before.find("\nb ") + 1),
            R"(a key of a GPT-3 'small' "x" alice 1 4x2x1 )"
            R"({"schedule":"1f1b"} stage,instruction
 [70.5] min-energy characterizing why not 1700000000
labels project=x team=language
rank 0 0 0 0 GPU-0 NVIDIA A100 node1 [210 1410]
rank 5 1 1 0 GPU-5 NVIDIA A100 node1 [210 1410]
measured 5 1 I 1410 0.1 0.3333333333333333 12;1 F 1305 0.2 7 40 t0.0004 e0.14285714285714285 x1 c55.5 w2048 u1.1e-05 v-0.004 r0.002 s0.3 70.5 true 2 1.2 [1410 70.5 1.2;705 0.3333333333333333 0] 0.02 [120 64.1 23000 3.1 -400] [clock 1305 did not take: 1290 seen
MIG is on]
curve 1 {}
plan 1 0.30000000000000004 0 4095 64
plan 2 2 1
version 3 straggler 5.5 2 [1 1]
straggler 7 1 -1  1.2 0 9 -1
last straggler 8
iterations 3 10 50 4 6 252 9 1000000 120000000000
detection {}
library {"model":"GPT-3"} measured 2 0 stage
 [71.5]
)");
}

TEST_P(StoreTest, TheNextProfileWaitsUntilItIsAdoptedOrDropped) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write(
      {StateChange{.job = "a", .state = JobState::kRunning, .next = StateChange::Next::kAdopt}}));
  JobRecord job = JobOrThrow(*store, "a").job;
  EXPECT_EQ(job.profile_csv, "stage\n");
  EXPECT_EQ(job.blocking_power_watts, std::vector<double>{71.5});
  EXPECT_EQ(job.next_profile_csv, "");
  EXPECT_EQ(job.settled_round, 2);
  ASSERT_TRUE(store->Write({StateChange{
      .job = "a", .state = JobState::kProfiling, .sweep_round = 3, .next_profile_csv = "other"}}));
  ASSERT_TRUE(store->Write(
      {StateChange{.job = "a", .state = JobState::kRunning, .next = StateChange::Next::kDrop}}));
  job = JobOrThrow(*store, "a").job;
  EXPECT_EQ(job.profile_csv, "stage\n");
  EXPECT_EQ(job.next_profile_csv, "");
  EXPECT_EQ(job.settled_round, 3);
}

TEST_P(StoreTest, ProfilesOutliveTheirJobs) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({JobGone{"a"}}));
  ASSERT_EQ(store->ListProfiles()->size(), 1);
  const auto found = store->FindProfile("p-a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->job, "a");
  EXPECT_EQ((*found)->profile_csv, "stage,x\n");
  EXPECT_EQ((*found)->blocking_power_watts, (std::vector<double>{70.5, 1.0 / 3}));
  EXPECT_EQ((*found)->metadata_json, "{\"a\":1}");
  EXPECT_EQ((*found)->conditions_json, "{\"c\":3}");
  EXPECT_EQ(store->ListProfiles()->front().conditions_json, "{\"c\":3}");
  // The newest of its layout.
  ASSERT_TRUE(store->Write({SampleJob("b"), ProfileRecord{.job = "b",
                                                          .id = "p-b",
                                                          .model = "GPT-3",
                                                          .layout = "{}",
                                                          .created_at_seconds = 1.8e9}}));
  EXPECT_EQ((*store->FindProfileOfLayout("{}"))->id, "p-b");
  EXPECT_EQ(*store->FindProfileOfLayout("else"), std::nullopt);
  // What is there stays as it is.
  ASSERT_TRUE(store->Write({ProfileRecord{.job = "b", .id = "p-b", .layout = "else"}}));
  EXPECT_EQ((*store->FindProfile("p-b"))->layout, "{}");
  ASSERT_TRUE(store->DeleteProfile("p-b"));
  ASSERT_TRUE(store->DeleteProfile("p-b"));
  EXPECT_EQ((*store->FindProfileOfLayout("{}"))->id, "p-a");
  EXPECT_FALSE(store->FindProfile("p-b")->has_value());
}

TEST_P(StoreTest, ConditionsAreThoseOfTheJobThatToldThemLast) {
  {
    const auto store = Open();
    ASSERT_TRUE(store->Write({SampleJob("a"), ProfileRecord{.job = "a", .id = "p-a"}}));
    EXPECT_EQ((*store->FindProfile("p-a"))->conditions_json, "");
    ASSERT_TRUE(store->Write({ProfileConditions{"a", "p-a", "{\"first\":1}"}}));
    // Another job, which uses the same profile.
    ASSERT_TRUE(store->Write({SampleJob("b"), ProfileConditions{"b", "p-a", "{\"second\":2}"}}));
    // Of a profile that is gone.
    ASSERT_TRUE(store->Write({ProfileConditions{"b", "p-none", "{}"}}));
  }
  const auto store = Open();
  EXPECT_EQ((*store->FindProfile("p-a"))->conditions_json, "{\"second\":2}");
  EXPECT_EQ(store->ListProfiles()->size(), 1);
}

TEST_P(StoreTest, AStragglerThatIsKnownGetsItsFactor) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({StragglerRecord{.job = "a", .id = 7, .pipeline = 0, .factor = 1.5}}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.stragglers.size(), 1);
  EXPECT_EQ(job.stragglers[0].factor, 1.5);
  EXPECT_EQ(job.stragglers[0].pipeline, 1);
}

TEST_P(StoreTest, ARankThatComesBackReplacesItsGpu) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a"), SampleRank("a", 3)}));
  RankRecord again = SampleRank("a", 3);
  again.gpu_uuid = "GPU-new";
  again.clocks_mhz = {};
  ASSERT_TRUE(store->Write({again}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.ranks.size(), 1);
  EXPECT_EQ(job.ranks[0].gpu_uuid, "GPU-new");
  EXPECT_TRUE(job.ranks[0].clocks_mhz.empty());
}

TEST_P(StoreTest, NewCurvesReplaceOldPlans) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({CurveRecord{.job = "a", .revision = 2, .plans = {{.id = 9}}}}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.curve->plans.size(), 1);
  EXPECT_EQ(job.curve->plans[0].id, 9);
  EXPECT_EQ(job.curve->revision, 2);
}

TEST_P(StoreTest, AJobThatGoesTakesAllItsFactsAlong) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({JobGone{"a"}}));
  EXPECT_EQ(Described(*store), "");
  // Nothing is left that a new job of this name would inherit.
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  EXPECT_THAT(Described(*store), Mentions("straggler", "0"));
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 0);
}

TEST_P(StoreTest, AWriteIsAllOrNothing) {
  const auto store = Open();
  const Revision written = store->Write({SampleJob("a"), SampleRank("nobody", 0)});
  ASSERT_FALSE(written);
  EXPECT_EQ(Described(*store), "");
  EXPECT_EQ(store->counters().failures, 1);
  EXPECT_EQ(store->counters().last_error, written.error().message);
  // The fault is that of the fact.
  EXPECT_FALSE(store->counters().is_failing);
}

TEST_P(StoreTest, OneThatIsRefusedTakesNoOtherWithIt) {
  std::vector<std::future<bool>> answers;
  {
    const auto store = Open();
    ASSERT_TRUE(store->Write({SampleJob("a")}));
    for (int rank = 0; rank < 100; ++rank) {
      auto answer = std::make_shared<std::promise<bool>>();
      answers.push_back(answer->get_future());
      const std::string job = rank == 50 ? "nobody" : "a";
      RankRecord record = SampleRank(job, rank);
      record.dp_rank = rank;
      store->Add({record},
                 [answer](const Revision& written) { answer->set_value(written.has_value()); });
    }
  }  // Closing acknowledges what was added.
  for (int rank = 0; rank < 100; ++rank) EXPECT_EQ(answers[rank].get(), rank != 50) << rank;
  EXPECT_EQ(JobOrThrow(*Open(), "a").ranks.size(), 99);
}

TEST_P(StoreTest, AStormSharesItsCommits) {
  constexpr int kRanks = 2000;
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::atomic<int> answered = 0;
  std::promise<void> all;
  for (int rank = 0; rank < kRanks; ++rank) {
    RankRecord record = SampleRank("a", rank);
    record.dp_rank = rank;
    store->Add({record}, [&](const Revision& written) {
      EXPECT_TRUE(written);
      if (++answered == kRanks) all.set_value();
    });
  }
  ASSERT_EQ(all.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_LT(store->counters().commits, kRanks / 10);
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), kRanks);
}

TEST_P(StoreTest, ACallbackMayWriteAgain) {
  const auto store = Open();
  std::promise<bool> second;
  store->Add({SampleJob("a")}, [&](const Revision&) {
    second.set_value(store->Write({SampleRank("a", 0)}).has_value());
  });
  std::future<bool> answer = second.get_future();
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(answer.get());
}

TEST_P(StoreTest, ACallbackThatThrowsIsToldAndTheNextIsCalled) {
  std::promise<std::string> told;
  const auto store =
      Store::Open(spec_, [&](const std::string& sentence) { told.set_value(sentence); });
  ASSERT_TRUE(store);
  std::promise<bool> next;
  (*store)->Add({SampleJob("a")}, [](const auto&) { throw std::runtime_error("no room"); });
  (*store)->Add({SampleJob("b")},
                [&](const auto& written) { next.set_value(written.has_value()); });
  EXPECT_TRUE(next.get_future().get());
  EXPECT_THAT(told.get_future().get(), Mentions("room"));
}

TEST_P(StoreTest, ThreadsShareIt) {
  const auto store = Open();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string job = fmt::format("job{}", thread);
      EXPECT_TRUE(store->Write({SampleJob(job)}));
      for (int rank = 0; rank < 10; ++rank) EXPECT_TRUE(store->Write({SampleRank(job, rank)}));
      EXPECT_EQ(JobOrThrow(*store, job).ranks.size(), 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->ListHeads()->size(), 4);
}

}  // namespace

// What a server reads when it starts, also where a job is damaged; and what of a
// job is kept.

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
  EXPECT_EQ(head.revision, job.revision);
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
  EXPECT_EQ(job.iterations.size(), kMostStoredVersions + 5);
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
  const auto late = store->Write({TargetChange{"a", "1.1x"}}, BootClock::now());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, kTooLate);
  EXPECT_THAT(late.error().message, AllOf(Mentions("a", "late"), Mentions("written")));
  EXPECT_FALSE(store->counters().is_failing);
  EXPECT_TRUE(
      store->Write({TargetChange{"a", "1.2x"}}, BootClock::now() + std::chrono::minutes(1)));
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, "1.2x");
  EXPECT_EQ(JobOrThrow(*store, "a").revision, 2);
}

// As its client is gone when the transaction begins.
TEST_P(HeadsTest, AChangeThatNobodyWaitsForIsNotMade) {
  const auto store = Open();
  const auto write = [&](Fact fact, bool is_wanted) {
    // Shared: the store's thread may still be in it when its value is read.
    const auto promise = std::make_shared<std::promise<Revision>>();
    std::future<Revision> future = promise->get_future();
    store->Add(
        {std::move(fact)}, [promise](const Revision& written) { promise->set_value(written); },
        [is_wanted] { return is_wanted; });
    return future.get();
  };
  EXPECT_EQ(write(SampleJob("a"), false).error().code, kTooLate);
  EXPECT_EQ(store->ListHeads()->size(), 0);
  // Its id and its key are free.
  EXPECT_EQ(write(SampleJob("a"), true).value(), 1);
  EXPECT_EQ(write(TargetChange{"a", "1.1x"}, false).error().code, kTooLate);
  EXPECT_EQ(JobOrThrow(*store, "a").revision, 1);
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
  EXPECT_TRUE(store_->LoadJob("c"));
  // It can still be deleted.
  EXPECT_TRUE(store_->Write({JobGone{"b"}}));
  EXPECT_EQ(store_->ListHeads()->size(), 2);
}

TEST_F(DamageTest, ADamagedHeadHasItsIdAndKey) {
  for (const char* const job : {"a", "b", "c"}) ASSERT_TRUE(store_->Write(SampleFacts(job)));
  Damage("UPDATE jobs SET state = 'dancing' WHERE id = 'a'");
  Damage("UPDATE jobs SET origin = 7 WHERE id = 'c'");
  const auto heads = store_->ListHeads();
  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->size(), 3);
  EXPECT_EQ((*heads)[0].id, "a");
  EXPECT_EQ((*heads)[0].client_key, SampleJob("a").client_key);
  EXPECT_EQ((*heads)[0].state, JobState::kRegistering);
  for (const char* const job : {"a", "c"}) {
    EXPECT_EQ(store_->LoadJob(job).error().code, kDamaged);
  }
  EXPECT_TRUE(store_->LoadJob("b"));
}

TEST_F(DamageTest, ATargetThatNobodyCanReadSetsItsJobAside) {
  for (const char* const job : {"a", "b"}) ASSERT_TRUE(store_->Write(SampleFacts(job)));
  Damage("UPDATE jobs SET target = '1.1' WHERE id = 'a'");
  EXPECT_EQ(store_->LoadJob("a").error().code, kDamaged);
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
                      "j.finished_at, r.revision FROM jobs j CROSS JOIN revisions r "
                      "WHERE r.job = j.id ORDER BY j.created_at, j.id");
  for (const soci::row& row : rows) plan += row.get<std::string>(3) + "\n";
  EXPECT_THAT(plan, Mentions("SCAN", "USING", "INDEX", "jobs_by_age"));
}

}  // namespace

// Revisions of jobs: what counts as a change.

namespace {

class RevisionTest : public AnyStoreTest {
 protected:
  void SetUp() override {
    AnyStoreTest::SetUp();
    if (!IsSkipped()) store_ = Open();
  }

  std::int64_t Written(const std::vector<Fact>& facts) const {
    const Revision revision = store_->Write(facts);
    if (!revision) ADD_FAILURE() << revision.error().message;
    return revision.value_or(-1);
  }
  Error Refused(const std::vector<Fact>& facts) const {
    const Revision revision = store_->Write(facts);
    if (!revision) return revision.error();
    ADD_FAILURE() << "not refused";
    return {};
  }

  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(On, RevisionTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(RevisionTest, ChangesRaiseItAndRowsDoNot) {
  EXPECT_EQ(Written({SampleJob("a")}), 1);
  std::int64_t revision = 1;
  for (const Fact& fact : SampleFacts("a")) {
    if (std::holds_alternative<JobRecord>(fact)) continue;
    const bool is_row =
        std::holds_alternative<RankRecord>(fact) || std::holds_alternative<Measurements>(fact) ||
        std::holds_alternative<IterationSummary>(fact) || std::holds_alternative<HistoryRow>(fact);
    const std::int64_t after = Written({fact});
    if (!is_row) {
      EXPECT_EQ(after, ++revision) << fact.index();
    }
    EXPECT_EQ(store_->ListHeads()->at(0).revision, revision) << fact.index();
  }
  EXPECT_EQ(JobOrThrow(*store_, "a").revision, revision);
  // Once a request.
  EXPECT_EQ(Written({TargetChange{"a", "fastest"}, DetectionChange{"a", "{}"}, SampleRank("a", 0)}),
            revision + 1);
}

TEST_P(RevisionTest, WhatTheTablesRefuseIsAConflict) {
  Written({SampleJob("a"), SampleRank("a", 0)});
  EXPECT_EQ(Refused({SampleRank("nobody", 0)}).code, ErrorCode::kConflict);
  RankRecord same_place = SampleRank("a", 9);
  same_place.dp_rank = 0;
  same_place.pp_rank = 0;
  EXPECT_EQ(Refused({same_place}).code, ErrorCode::kConflict);
  JobRecord same_key = SampleJob("b");
  same_key.client_key = SampleJob("a").client_key;
  EXPECT_EQ(Refused({same_key}).code, ErrorCode::kConflict);
}

TEST_P(RevisionTest, ARequestIsAboutOneJob) {
  Written({SampleJob("a")});
  Written({SampleJob("b")});
  EXPECT_EQ(Refused({TargetChange{"a", "x"}, TargetChange{"b", "x"}}).code,
            ErrorCode::kInvalidInput);
  EXPECT_EQ(Refused({}).code, ErrorCode::kInvalidInput);
}

TEST_P(RevisionTest, AJobThatIsGoneTakesNothing) {
  Written({SampleJob("a")});
  Written({JobGone{"a"}});
  Written({JobGone{"a"}});
  EXPECT_EQ(Refused({TargetChange{"a", "x"}}).code, ErrorCode::kConflict);
  EXPECT_TRUE(store_->ListHeads()->empty());
  EXPECT_EQ(store_->LoadJob("a").value(), std::nullopt);
}

TEST_P(RevisionTest, SumsOfIterationsReplaceTheEarlierOnes) {
  IterationSummary sum = {.job = "a", .plan_version = 2, .reports = 3, .total_seconds = 9};
  Written({SampleJob("a")});
  Written({sum});
  store_.reset();
  store_ = Open();
  sum.reports = 5;
  Written({sum});
  ASSERT_EQ(JobOrThrow(*store_, "a").iterations.size(), 1);
  EXPECT_EQ(JobOrThrow(*store_, "a").iterations[0].reports, 5);
}

TEST_P(RevisionTest, ARankKeepsItsPosition) {
  Written({SampleJob("a")});
  RankRecord rank{.job = "a", .rank = 3, .dp_rank = 0, .pp_rank = 1};
  Written({rank});
  rank.node = "n9";
  Written({rank});
  rank.pp_rank = 0;
  EXPECT_EQ(Refused({rank}).code, ErrorCode::kConflict);
  const std::vector<RankRecord> ranks = JobOrThrow(*store_, "a").ranks;
  ASSERT_EQ(ranks.size(), 1);
  EXPECT_EQ(ranks[0].pp_rank, 1);
  EXPECT_EQ(ranks[0].node, "n9");
}

}  // namespace

// What the store keeps of iterations by minute, hour and day, and for how long.

namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kToday = 20'000 * kDay;

class HistoryTest : public AnyStoreTest {
 protected:
  void SetUp() override {
    AnyStoreTest::SetUp();
    if (!IsSkipped()) store_ = Open();
  }

  static HistoryRow Row(Resolution resolution, std::int64_t start, std::int64_t reports = 1) {
    HistoryRow row = SampleHistory("a");
    row.resolution = resolution;
    row.start = start;
    row.reports = reports;
    return row;
  }
  void Write(const std::vector<Fact>& facts) const { ASSERT_TRUE(store_->Write(facts)); }
  std::vector<NamedHistoryRow> Rows(Resolution resolution, const std::string& job = "",
                                    std::int64_t since = 0,
                                    std::int64_t until = kToday + kDay) const {
    return store_
        ->ListHistory({.job = job, .resolution = resolution, .since = since, .until = until})
        .value();
  }

  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(On, HistoryTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(HistoryTest, ARowIsReadAsItWasWritten) {
  Write({SampleJob("a")});
  const HistoryRow row = SampleHistory("a");
  Write({row});
  ASSERT_EQ(Rows(row.resolution).size(), 1U);
  EXPECT_EQ(Rows(row.resolution)[0].row, row);
  EXPECT_EQ(Rows(row.resolution)[0].name, SampleJob("a").name);
  EXPECT_EQ(Rows(row.resolution)[0].owner, "alice");
  EXPECT_EQ(Rows(row.resolution)[0].labels, SampleJob("a").labels);
  EXPECT_EQ(JobOrThrow(*store_, "a").history, std::vector<HistoryRow>{row});
}

TEST_P(HistoryTest, ALaterRowReplacesAnEarlierOne) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kDay, kToday, 3)});
  store_.reset();
  store_ = Open();
  EXPECT_EQ(JobOrThrow(*store_, "a").history.size(), 1);
  Write({Row(Resolution::kDay, kToday, 5)});
  ASSERT_EQ(Rows(Resolution::kDay).size(), 1U);
  EXPECT_EQ(Rows(Resolution::kDay)[0].row.reports, 5);
}

TEST_P(HistoryTest, RowsHaveTheLabelsThatTheirJobHasNow) {
  Write({SampleJob("a")});
  JobRecord bare = SampleJob("b");
  bare.labels = {};
  Write({bare});
  for (const char* const job : {"a", "b"}) {
    HistoryRow row = Row(Resolution::kDay, kToday);
    row.job = job;
    Write({row});
  }
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, SampleJob("a").labels);
  EXPECT_TRUE(Rows(Resolution::kDay).at(1).labels.empty());
  Write({LabelsChange{"a", {{"team", "language"}}}});
  Write({LabelsChange{"b", {{"team", "vision"}}}});
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, (JobLabels{{"team", "language"}}));
  EXPECT_EQ(Rows(Resolution::kDay).at(1).labels, (JobLabels{{"team", "vision"}}));
  Write({LabelsChange{"b", {}}});
  EXPECT_TRUE(Rows(Resolution::kDay).at(1).labels.empty());
  EXPECT_TRUE(JobOrThrow(*store_, "b").job.labels.empty());
  // They stay with the days; a job without days takes its labels along.
  Write({JobGone{"a"}});
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, (JobLabels{{"team", "language"}}));
  EXPECT_FALSE(store_->Write({LabelsChange{"a", {}}}));
}

TEST_P(HistoryTest, OnlyTheLastRowsAreOfTheJobsState) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kMinute, kToday + 60),
         Row(Resolution::kHour, kToday)});
  EXPECT_EQ(JobOrThrow(*store_, "a").history.size(), 2U);
}

TEST_P(HistoryTest, RowsOfOneJobAndTimeAreRead) {
  Write({SampleJob("a")});
  Write({SampleJob("b")});
  HistoryRow other = Row(Resolution::kMinute, kToday);
  other.job = "b";
  Write({other});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kMinute, kToday + 60),
         Row(Resolution::kMinute, kToday + 120)});
  const std::vector<NamedHistoryRow> rows =
      Rows(Resolution::kMinute, "a", kToday + 60, kToday + 120);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].row.start, kToday + 60);
  EXPECT_EQ(Rows(Resolution::kMinute).size(), 4U);
}

TEST_P(HistoryTest, OldMinutesAndHoursAreForgottenAndDaysStay) {
  Write({SampleJob("a")});
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour, Resolution::kDay}) {
    for (const std::int64_t days : {0, 1, 2, 31, 32}) {
      Write({Row(resolution, kToday - days * kDay)});
    }
  }
  ASSERT_TRUE(store_->ForgetHistory(static_cast<double>(kToday)));
  EXPECT_EQ(Rows(Resolution::kMinute).size(), 2U);
  EXPECT_EQ(Rows(Resolution::kHour).size(), 4U);
  EXPECT_EQ(Rows(Resolution::kDay).size(), 5U);
}

// More than one transaction deletes.
TEST_P(HistoryTest, ManyRowsAreForgotten) {
  Write({SampleJob("a")});
  for (int i = 0; i < 3; ++i) {
    std::vector<Fact> rows;
    for (int j = 0; j < 400; ++j) {
      rows.emplace_back(Row(Resolution::kMinute, 60 * (400 * i + j)));
    }
    Write(rows);
  }
  ASSERT_TRUE(store_->ForgetHistory(static_cast<double>(kToday)));
  EXPECT_TRUE(Rows(Resolution::kMinute).empty());
}

TEST_P(HistoryTest, DaysStayWhenTheJobGoes) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kHour, kToday),
         Row(Resolution::kDay, kToday)});
  Write({JobGone{"a"}});
  EXPECT_TRUE(Rows(Resolution::kMinute).empty());
  EXPECT_TRUE(Rows(Resolution::kHour).empty());
  ASSERT_EQ(Rows(Resolution::kDay).size(), 1U);
  EXPECT_EQ(Rows(Resolution::kDay)[0].name, SampleJob("a").name);
  // And nothing more is written of it.
  EXPECT_FALSE(store_->Write({Row(Resolution::kDay, kToday, 9)}));
  EXPECT_EQ(Rows(Resolution::kDay)[0].row.reports, 1);
}

// What is read of the cell that a value has; none: it is refused.
template <typename T>
std::optional<T> ReadBack(const T& value) {
  T read = {};
  return ReadCell(CellOf(value), &read) ? std::optional(read) : std::nullopt;
}

RC_GTEST_PROP(CellsTest, WhatIsWrittenIsReadBack, (const std::vector<int>& integers)) {
  RC_ASSERT(ReadBack(integers) == integers);
  std::vector<double> numbers;
  std::map<int, std::int64_t> exceptions;
  for (const int integer : integers) {
    numbers.push_back(integer / 3.0);
    exceptions[integer] = std::int64_t{integer} * 1'000'000'000;
  }
  RC_ASSERT(ReadBack(numbers) == numbers);
  RC_ASSERT(ReadBack(exceptions) == exceptions);
}

RC_GTEST_PROP(CellsTest, WhatIsSaidOfARowIsReadBack, (const std::vector<int>& seeds)) {
  std::vector<MeasuredRow> rows;
  for (const int seed : seeds) {
    const auto bits = static_cast<unsigned>(seed);
    const double value = seed / 7.0;
    MeasuredRow& row = rows.emplace_back(MeasuredRow{.clock_mhz = 1410, .time_seconds = value});
    if ((bits & 1U) != 0) row.time_std_seconds = value;
    if ((bits & 2U) != 0) row.energy_std_joules = -value;
    row.throttled = (bits & 4U) != 0;
    if ((bits & 8U) != 0) row.temperature_celsius = value;
    if ((bits & 16U) != 0) row.work = value;
    if ((bits & 32U) != 0) row.seconds_per_work = value;
    if ((bits & 64U) != 0) row.joules_per_work = value;
    if ((bits & 128U) != 0) row.time_residual_std_seconds = value;
    if ((bits & 256U) != 0) row.energy_residual_std_joules = value;
    if ((bits & 512U) != 0) row.time_sources = {0.25, -0.125};
    row.type = static_cast<ComputationType>(bits % kNumComputationTypes);
  }
  RC_ASSERT(ReadBack(rows) == rows);
}

TEST(CellsTest, LabelsAreReadBack) {
  const JobLabels labels = {{"example.com/cost-centre", "a.1"}, {"Team", "vision_2-b"}};
  EXPECT_EQ(ReadBack(labels), labels);
  EXPECT_EQ(CellOf(JobLabels()), "");
  EXPECT_EQ(ReadBack(JobLabels()), JobLabels());
}

template <typename T>
bool IsRefused(std::string_view text) {
  T read = {};
  return !ReadCell(text, &read);
}

TEST(CellsTest, WhatNobodyWroteIsRefused) {
  EXPECT_TRUE(IsRefused<std::vector<int>>("1 x"));
  EXPECT_TRUE(IsRefused<std::vector<double>>("1.5,2"));
  for (const char* const rows : {"0 F 1410 0.1 1", "0 X 1410 0.1 1 1", "0 F 1410 0.1 1 1 q2",
                                 "0 F 1410 0.1 1 1 t", "0 F 1410 0.1 1 1 x2"}) {
    EXPECT_TRUE(IsRefused<std::vector<MeasuredRow>>(rows)) << rows;
  }
  EXPECT_TRUE(IsRefused<std::optional<SweepCost>>("1 2 3"));
  EXPECT_TRUE(IsRefused<std::vector<MeasuredWaiting>>("1410 80"));
  EXPECT_TRUE(IsRefused<std::vector<MeasuredWaiting>>("1410 80 x"));
  using Exceptions = std::map<int, std::int64_t>;
  EXPECT_TRUE(IsRefused<Exceptions>("1"));
  for (const char* const labels : {"team", "team=", "team=a team=b"}) {
    EXPECT_TRUE(IsRefused<JobLabels>(labels)) << labels;
  }
  EXPECT_TRUE(IsRefused<JobState>("soon"));
}

}  // namespace

}  // namespace perseus::store
