// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The database under a store dies, is away, starts again, or freezes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"
#include "support/postgres.h"

namespace perseus::store {
namespace {

constexpr std::chrono::seconds kPatienceWithTrouble{60};

class PostgresqlFailuresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    server_ = std::make_unique<PostgresServer>();
  }

  std::unique_ptr<PostgresServer> server_;
};

// Registers ranks of job "a", eight at a time, from `first` on, until told to stop.
class Registrar {
 public:
  Registrar(Store* store, int first) : store_(store), next_(first) {
    thread_ = std::thread([this] { RegisterAll(); });
  }
  // Ends, and waits for the last answers.
  ~Registrar() {
    stopping_ = true;
    thread_.join();
  }
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  std::set<int> acknowledged() const {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
  }
  bool WaitForMore(std::size_t than) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatienceWithTrouble,
                             [&] { return acknowledged_.size() > than; });
  }

 private:
  void RegisterAll() {
    for (; !stopping_; ++next_) {
      RankRecord rank = SampleRank("a", next_);
      rank.dp_rank = next_;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return under_way_ < 8; });
        ++under_way_;
      }
      store_->Add({rank}, [this, number = next_](const Result<JobMarks>& written) {
        const std::lock_guard lock(mutex_);
        if (written) acknowledged_.insert(number);
        --under_way_;
        changed_.notify_all();
      });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }

  Store* const store_;
  int next_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  std::set<int> acknowledged_;
  std::thread thread_;
};

std::set<int> StoredRanks(Store& store) {
  std::set<int> ranks;
  for (const RankRecord& rank : JobOrThrow(store, "a", Parts::kRanks).ranks) {
    ranks.insert(rank.rank);
  }
  return ranks;
}

TEST_F(PostgresqlFailuresTest, NothingAcknowledgedIsLostWhenItIsKilled) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::mt19937 random(7);
  std::set<int> acknowledged;
  {
    Registrar registrar(store.get(), 0);
    for (int kill = 0; kill < 6; ++kill) {
      const std::size_t before = registrar.acknowledged().size();
      ASSERT_TRUE(registrar.WaitForMore(before)) << "stuck after kill " << kill;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
      if (kill % 2 == 0) {
        server_->Kill();
        server_->Start();
      } else {
        server_->KillABackend();
      }
    }
    ASSERT_TRUE(registrar.WaitForMore(registrar.acknowledged().size()));
    acknowledged = registrar.acknowledged();
  }
  const std::set<int> stored = StoredRanks(*store);
  EXPECT_TRUE(
      std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()));
  EXPECT_GT(acknowledged.size(), 10);
  EXPECT_FALSE(store->counters().is_failing);
}

TEST_F(PostgresqlFailuresTest, ARestartIsWaitedFor) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Restart();
  EXPECT_TRUE(store->Write({SampleRank("a", 0)}));
  server_->Restart();
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 1);
  server_->Restart();
  EXPECT_TRUE(store->ClaimWork(1));
}

TEST_F(PostgresqlFailuresTest, WithoutADatabaseThereIsAnAnswer) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Kill();
  std::vector<std::future<Result<JobMarks>>> writes;
  for (int rank = 0; rank < 4; ++rank) {
    writes.push_back(std::async(std::launch::async,
                                [&, rank] { return store->Write({SampleRank("a", rank)}); }));
  }
  for (auto& write : writes) {
    ASSERT_EQ(write.wait_for(kPatienceWithTrouble), std::future_status::ready);
    const Result<JobMarks> written = write.get();
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kIo);
    EXPECT_THAT(written.error().message, Mentions("reached"));
  }
  EXPECT_TRUE(store->counters().is_failing);
  EXPECT_FALSE(store->LoadJob("a"));
  EXPECT_FALSE(store->ListHeads());
  server_->Start();
  EXPECT_TRUE(store->Write({SampleRank("a", 9)}));
  EXPECT_FALSE(store->counters().is_failing);
  EXPECT_EQ(StoredRanks(*store), std::set<int>{9});
}

// The connection goes while the first two transactions end.
TEST_F(PostgresqlFailuresTest, RanksAreWrittenAgainWhereTheEndIsUnknown) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Run(
      "CREATE SEQUENCE ends; "
      "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF nextval('ends') <= 2 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; "
      "RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT ON ranks DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION lose(); "
      "CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT ON measurements DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()");
  EXPECT_TRUE(store->Write({SampleRank("a", 3)}));
  EXPECT_EQ(StoredRanks(*store), std::set<int>{3});
  // Rows that would be there twice are not.
  server_->Run("ALTER SEQUENCE ends RESTART");
  const auto written = store->Write({Measurements{.job = "a", .rank = 3, .done = true}});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, Mentions("known", "whether"));
}

TEST_F(PostgresqlFailuresTest, AFrozenDatabaseIsGivenUp) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  ASSERT_TRUE(store->LoadJob("a"));
  server_->Signal(SIGSTOP);
  auto write = std::async(std::launch::async, [&] { return store->Write({SampleRank("a", 0)}); });
  auto read = std::async(std::launch::async, [&] { return store->LoadJob("a").has_value(); });
  const bool both = write.wait_for(kPatienceWithTrouble) == std::future_status::ready &&
                    read.wait_for(kPatienceWithTrouble) == std::future_status::ready;
  server_->Signal(SIGCONT);
  ASSERT_TRUE(both);
  EXPECT_FALSE(read.get());
  const Result<JobMarks> written = write.get();
  EXPECT_FALSE(written);
  Result<JobMarks> again = store->Write({SampleRank("a", 1)});
  for (int i = 0; i < 10 && !again; ++i) again = store->Write({SampleRank("a", 1)});
  EXPECT_TRUE(again) << again.error().message;
}

// A connection that does not come takes seconds to give up. Only one caller waits for it.
TEST_F(PostgresqlFailuresTest, ReadsOfAFrozenDatabaseDoNotQueue) {
  constexpr int kReads = 40;  // One after another they would take minutes.
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Signal(SIGSTOP);
  // Until it counts as away.
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(store->LoadJob("a"));
  std::vector<std::future<bool>> reads;
  for (int i = 0; i < kReads; ++i) {
    reads.push_back(
        std::async(std::launch::async, [&] { return store->LoadJob("a").has_value(); }));
  }
  const auto until = std::chrono::steady_clock::now() + kPatienceWithTrouble;
  const auto answered = std::count_if(reads.begin(), reads.end(), [&](const auto& read) {
    return read.wait_until(until) == std::future_status::ready;
  });
  server_->Signal(SIGCONT);
  EXPECT_EQ(answered, kReads);
  reads.clear();
  bool is_read = false;
  for (int i = 0; i < 10 && !is_read; ++i) is_read = store->LoadJob("a").has_value();
  EXPECT_TRUE(is_read);
}

TEST_F(PostgresqlFailuresTest, WatchersGoOnAfterARestart) {
  std::mutex mutex;  // Until the stores are closed.
  std::condition_variable changed;
  std::set<std::string> told;
  const auto one = OpenOrThrow(server_->Uri());
  const auto other = OpenOrThrow(server_->Uri());
  other->Watch([&](const std::vector<JobMarks>& marks, bool are_all) {
    if (are_all) return;
    const std::lock_guard lock(mutex);
    for (const JobMarks& mark : marks) told.insert(mark.id);
    changed.notify_all();
  });
  // By message, which needs a connection that listens: a new job until one is told of.
  const auto is_told = [&](const std::string& prefix) {
    const auto until = std::chrono::steady_clock::now() + kPatienceWithTrouble;
    for (int job = 0; std::chrono::steady_clock::now() < until; ++job) {
      static_cast<void>(one->Write({SampleJob(fmt::format("{}{}", prefix, job))}));
      std::unique_lock lock(mutex);
      const auto is_there = [&] { return told.lower_bound(prefix) != told.end(); };
      if (changed.wait_for(lock, std::chrono::milliseconds(200), is_there)) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_told("a"));
  server_->Kill();
  server_->Start();
  EXPECT_TRUE(is_told("b"));
}

TEST_F(PostgresqlFailuresTest, ThePoolerStaysAndTheDatabaseDies) {
  if (const std::string why = PgBouncer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
  const PgBouncer pooler(*server_);
  const auto store = OpenOrThrow(pooler.Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::set<int> acknowledged;
  {
    Registrar registrar(store.get(), 0);
    for (int kill = 0; kill < 3; ++kill) {
      ASSERT_TRUE(registrar.WaitForMore(registrar.acknowledged().size()));
      server_->Kill();
      server_->Start();
    }
    ASSERT_TRUE(registrar.WaitForMore(registrar.acknowledged().size()));
    acknowledged = registrar.acknowledged();
  }
  const std::set<int> stored = StoredRanks(*store);
  EXPECT_TRUE(
      std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()));
}

TEST_F(PostgresqlFailuresTest, AStandbyTakesOverWithAllThatWasAcknowledged) {
  const auto standby = PostgresServer::MakeStandby(*server_);
  // The standby alone is no store to write to.
  const auto read_only = Store::Open(standby->Uri());
  ASSERT_FALSE(read_only);
  EXPECT_THAT(read_only.error().message, Mentions("standby;"));
  const auto store =
      OpenOrThrow(fmt::format("postgresql://postgres@/perseus?host={},{}&port=5432,5432",
                              standby->sockets(), server_->sockets()));
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::set<int> acknowledged;
  {
    Registrar registrar(store.get(), 0);
    ASSERT_TRUE(registrar.WaitForMore(100));
    server_->Kill();
    standby->Promote();
    ASSERT_TRUE(registrar.WaitForMore(registrar.acknowledged().size() + 10));
    acknowledged = registrar.acknowledged();
  }
  const std::set<int> stored = StoredRanks(*store);
  EXPECT_TRUE(
      std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()));
}

// What was counted and lost is never counted again, whether or not a revision is expected.
TEST_F(PostgresqlFailuresTest, AStandbyThatLacksCommitsBeginsAnotherHistory) {
  const auto standby = PostgresServer::MakeStandby(*server_);
  const auto store =
      OpenOrThrow(fmt::format("postgresql://postgres@/perseus?host={},{}&port=5432,5432",
                              standby->sockets(), server_->sockets()));
  for (const char* const job : {"a", "b"}) ASSERT_TRUE(store->Write({SampleJob(job)}));
  // From here on the standby hears nothing.
  server_->Run("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres");
  server_->Run("SELECT pg_reload_conf()", "postgres");
  standby->Run("ALTER SYSTEM SET primary_conninfo = ''", "postgres");
  standby->Run("SELECT pg_reload_conf()", "postgres");
  const auto is_deaf = [&] { return server_->Ask("SELECT COUNT(*) FROM pg_stat_replication"); };
  while (is_deaf() != "0") std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(store->Write({TargetChange{"a", "1.1x"}, SampleRank("a", 0)}, 1));
  ASSERT_TRUE(store->Write({SampleRank("b", 0)}));
  const JobMarks lost = JobOrThrow(*store, "a").marks;
  EXPECT_EQ(lost, (JobMarks{.id = "a", .revision = 2, .rows = 2, .curve = 0}));
  server_->Kill();
  standby->Promote();

  const auto read = [&](const char* job) { return JobOrThrow(*store, job).marks; };
  ASSERT_EQ(read("a"), (JobMarks{.id = "a", .revision = 1, .rows = 1, .curve = 0}));
  // Whoever knows only what the standby had counts elsewhere, too.
  const auto refused = store->Write({TargetChange{"a", "1.2x"}}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, SampleJob("a").target);
  const JobMarks begun = read("a");
  EXPECT_GT(HistoryOf(begun.revision), lost.revision);
  EXPECT_EQ(begun.revision, HistoryOf(begun.revision));
  EXPECT_EQ(begun.rows, begun.revision);
  const auto changed = store->Write({TargetChange{"a", "1.2x"}}, begun.revision);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->revision, begun.revision + 1);
  // A rank is written at once.
  const auto row = store->Write({SampleRank("b", 1)});
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_GT(HistoryOf(row->rows), 0);
  EXPECT_EQ(row->rows, HistoryOf(row->rows) + 1);
  EXPECT_EQ(JobOrThrow(*store, "b").ranks.size(), 1);
}

}  // namespace
}  // namespace perseus::store
