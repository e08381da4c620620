// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clocks.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"
#include "support/postgres.h"

// Several stores on one database of PostgreSQL, and what they say where there is
// none that would do.
namespace perseus::store {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kPatience{30};

// Remembers what a store was told.
class Heard {
 public:
  WatchCallback Callback() {
    return [this](const std::vector<JobMarks>& marks, bool are_all) {
      const std::lock_guard lock(mutex_);
      if (are_all) {
        ++looks_;
      } else {
        for (const JobMarks& mark : marks) told_.push_back(mark);
      }
      last_ = marks;
      changed_.notify_all();
    };
  }
  bool WaitForTold(const JobMarks& mark) {
    return WaitFor([&] { return std::find(told_.begin(), told_.end(), mark) != told_.end(); });
  }
  bool WaitForAny(const JobMarks& mark) {
    return WaitFor([&] { return std::find(last_.begin(), last_.end(), mark) != last_.end(); });
  }
  bool WaitForLooks(int looks) {
    return WaitFor([&] { return looks_ >= looks; });
  }
  std::vector<JobMarks> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  template <typename Condition>
  bool WaitFor(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<JobMarks> told_;
  std::vector<JobMarks> last_;
  int looks_ = 0;
};

class PostgresqlTest : public AnyStoreTest {
 protected:
  std::string OpenError(const std::string& spec) const {
    const auto store = Store::Open(spec);
    return store ? "" : store.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(On, PostgresqlTest, ::testing::Values(Kind::kPostgresql), KindName);

class SeveralStoresTest : public AnyStoreTest {};
INSTANTIATE_TEST_SUITE_P(On, SeveralStoresTest,
                         ::testing::Values(Kind::kPostgresql, Kind::kPgBouncer), KindName);

TEST_P(SeveralStoresTest, OfTwoThatExpectOneRevisionOneIsFirst) {
  const auto one = Open();
  const auto other = Open();
  EXPECT_NE(one->server_id(), other->server_id());
  EXPECT_TRUE(one->is_shared());
  JobMarks marks = one->Write({SampleJob("a")}).value();
  for (int round = 0; round < 20; ++round) {
    const auto change = [&](Store* store, const std::string& target) {
      return store->Write({TargetChange{"a", target}}, marks.revision);
    };
    std::future<Result<JobMarks>> first = std::async(std::launch::async, change, one.get(), "1.1x");
    const Result<JobMarks> second = change(other.get(), "1.2x");
    const Result<JobMarks> both[] = {first.get(), second};
    ASSERT_NE(both[0].has_value(), both[1].has_value()) << round;
    EXPECT_EQ((both[0] ? both[1] : both[0]).error().code, ErrorCode::kConflict);
    const StoredJob job = JobOrThrow(*one, "a");
    EXPECT_EQ(job.job.target, both[0] ? "1.1x" : "1.2x");
    EXPECT_EQ(job.marks, both[0] ? *both[0] : *both[1]);
    EXPECT_EQ(job.marks.revision, marks.revision + 1);
    marks = job.marks;
  }
}

TEST_P(SeveralStoresTest, ManyWritersOfManyJobsDoNotBlockEachOther) {
  constexpr int kJobs = 8;
  constexpr int kRanks = 200;
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < 2; ++i) stores.push_back(Open());
  for (int job = 0; job < kJobs; ++job) {
    ASSERT_TRUE(stores[0]->Write({SampleJob(fmt::format("j{}", job))}));
  }
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0;
  int refused = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int job = 0; job < kJobs; ++job) {
      RankRecord record = SampleRank(fmt::format("j{}", (job * 5 + rank) % kJobs), rank);
      record.dp_rank = rank;
      stores[rank % 2]->Add({record}, [&](const Result<JobMarks>& written) {
        const std::lock_guard lock(mutex);
        ++answered;
        if (!written) ++refused;
        changed.notify_all();
      });
    }
  }
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, kPatience, [&] { return answered == kRanks * kJobs; }));
  EXPECT_EQ(refused, 0);
  for (int job = 0; job < kJobs; ++job) {
    EXPECT_EQ(JobOrThrow(*stores[0], fmt::format("j{}", job)).ranks.size(), kRanks);
  }
}

TEST_P(SeveralStoresTest, OthersHearOfPlansAndOfJobsThatCameAndWent) {
  Heard heard;  // Until the stores are closed.
  Heard own;
  const auto one = Open();
  const auto other = Open();
  other->Watch(heard.Callback());
  one->Watch(own.Callback());
  ASSERT_TRUE(heard.WaitForLooks(1));
  const JobMarks born = one->Write({SampleJob("a")}).value();
  EXPECT_TRUE(heard.WaitForAny(born));
  const JobMarks planned = one->Write({PlanVersion{.job = "a", .version = 1}}).value();
  EXPECT_TRUE(heard.WaitForAny(planned));
  // Not told of, and seen at the next look.
  const JobMarks measured = one->Write({SampleRank("a", 0)}).value();
  EXPECT_TRUE(heard.WaitForAny(measured));
  ASSERT_TRUE(one->Write({JobGone{"a"}}));
  if (GetParam() == Kind::kPostgresql) {
    EXPECT_TRUE(heard.WaitForTold({.id = "a"}));
    const std::vector<JobMarks> told = heard.told();
    EXPECT_EQ(std::count(told.begin(), told.end(), measured), 0);
    EXPECT_TRUE(own.told().empty());
  } else {
    ASSERT_TRUE(other->Write({SampleJob("b")}));
    EXPECT_TRUE(heard.WaitForLooks(3));
    EXPECT_TRUE(heard.told().empty());
  }
}

TEST_P(SeveralStoresTest, WorkIsGivenToOneAndTakenOverFromTheDead) {
  constexpr int kJobs = 60;
  const auto one = Open();
  const auto other = Open();
  for (int job = 0; job < kJobs; ++job) {
    const std::string id = fmt::format("j{}", job);
    ASSERT_TRUE(one->Write({SampleJob(id), WorkWanted{id}}));
  }
  std::set<std::string> claimed;
  std::mutex mutex;
  const auto claim_all = [&](Store* store) {
    while (const auto job = store->ClaimWork(1000).value()) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(claimed.insert(*job).second) << *job;
    }
  };
  std::thread thread(claim_all, other.get());
  claim_all(one.get());
  thread.join();
  EXPECT_EQ(claimed.size(), kJobs);
  // One whose lease ended goes to the other, and the first hears of it.
  ASSERT_TRUE(one->Write({SampleJob("x"), WorkWanted{"x"}}));
  EXPECT_EQ(one->ClaimWork(-1).value(), "x");
  EXPECT_TRUE(one->RenewWork("x", -1).value());
  EXPECT_EQ(other->ClaimWork(1000).value(), "x");
  EXPECT_FALSE(one->RenewWork("x", 1000).value());
  ASSERT_TRUE(one->FinishWork("x"));
  EXPECT_TRUE(other->RenewWork("x", 1000).value());
}

TEST_P(SeveralStoresTest, AllMayMigrateAtOnce) {
  std::vector<std::future<std::string>> opened;
  for (int i = 0; i < 4; ++i) {
    opened.push_back(std::async(std::launch::async, [this]() -> std::string {
      const auto store = Store::Open(spec_);
      return store ? "" : store.error().message;
    }));
  }
  for (std::future<std::string>& one : opened) EXPECT_EQ(one.get(), "");
  EXPECT_TRUE(Open()->Write(SampleFacts("a")));
}

TEST_P(PostgresqlTest, SentencesForWhatLacks) {
  PostgresServer& server = SharedPostgres();
  EXPECT_THAT(OpenError(server.Uri("nowhere")), Mentions("database", "role;"));
  EXPECT_THAT(OpenError(server.Uri("postgres", "nobody")), Mentions("database", "role;"));
  const std::string away = OpenError("postgresql:///x?host=/nowhere&password=hush");
  EXPECT_THAT(away, AllOf(Mentions("reached"), Not(HasSubstr("hush"))));
  server.Run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
  EXPECT_THAT(OpenError(server.Uri("latin")), Mentions("LATIN1"));
  // Of others, or with something of others in it.
  server.Run("CREATE DATABASE others");
  server.Run("CREATE ROLE guest LOGIN");
  EXPECT_THAT(OpenError(server.Uri("others", "guest")), Mentions("right;"));
  server.Run("CREATE TABLE jobs (x INTEGER)", "others");
  EXPECT_THAT(OpenError(server.Uri("others")), Mentions("store", "another"));
  EXPECT_EQ(server.Ask("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'", "others"),
            "1");
}

// A standby cannot be had in a moment; one transaction of a store on it fails as this does.
TEST_P(PostgresqlTest, ADefaultOfReadingOnlyIsOverruled) {
  { ASSERT_TRUE(Open()->Write({SampleJob("a")})); }
  SharedPostgres().Run("ALTER DATABASE " + DatabaseName() +
                       " SET default_transaction_read_only = on");
  EXPECT_TRUE(Open()->Write({SampleRank("a", 0)}));
}

TEST_P(PostgresqlTest, TextsThatItCannotHoldAreRefused) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  RankRecord nul = SampleRank("a", 0);
  nul.node = std::string("a\0b", 3);
  RankRecord no_utf8 = SampleRank("a", 1);
  no_utf8.node = "\xff";
  for (const RankRecord& rank : {nul, no_utf8}) {
    const Result<JobMarks> written = store->Write({rank});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidInput) << written.error().message;
  }
  EXPECT_FALSE(store->counters().is_failing);
  RankRecord odd = SampleRank("a", 2);
  odd.node = "'; DROP TABLE jobs; -- :x $1 \\ \"\n\xc3\xa9";
  ASSERT_TRUE(store->Write({odd}));
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.at(0).node, odd.node);
}

TEST_P(PostgresqlTest, OnlyNewsAreTold) {
  const auto store = Open();
  const std::unique_ptr<PGconn, decltype(&PQfinish)> listener(PQconnectdb((spec_).c_str()),
                                                              &PQfinish);
  PQclear(PQexec(listener.get(), "LISTEN perseus"));
  const auto told = [&] {
    PQclear(PQexec(listener.get(), "SELECT 1"));
    std::vector<std::string> messages;
    while (PGnotify* const message = PQnotifies(listener.get())) {
      messages.emplace_back(message->extra);
      PQfreemem(message);
    }
    return messages;
  };
  const auto expected = [&](const JobMarks& marks) {
    return std::vector{fmt::format("{} {} {}", marks.id, marks.revision, store->server_id())};
  };
  // The message follows the answer: after the next answer it is out.
  const auto settle = [&] { static_cast<void>(store->Write({WorkWanted{"a"}})); };
  const JobMarks born = store->Write({SampleJob("a")}).value();
  settle();
  EXPECT_EQ(told(), expected(born));
  for (int rank = 0; rank < 20; ++rank) ASSERT_TRUE(store->Write({SampleRank("a", rank)}));
  ASSERT_TRUE(store->Write({Measurements{.job = "a", .rank = 0}}));
  ASSERT_TRUE(store->Write({IterationSummary{.job = "a", .plan_version = 1, .reports = 1}}));
  ASSERT_TRUE(store->Write({TargetChange{"a", "fastest"}}));
  settle();
  EXPECT_TRUE(told().empty());
  const JobMarks planned = store->Write({PlanVersion{.job = "a", .version = 1}}).value();
  settle();
  EXPECT_EQ(told(), expected(planned));
}

}  // namespace

// The database under a store dies, is away, starts again, or freezes.

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

// A server that is stopped for a while, and a database that is not there yet.

namespace {

constexpr std::chrono::seconds kPatienceWithStops{60};

class PostgresqlFailuresStoppedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    server_ = std::make_unique<PostgresServer>();
  }
  bool WaitUntil(const std::function<bool()>& condition) const {
    const auto until = std::chrono::steady_clock::now() + kPatienceWithStops;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  std::unique_ptr<PostgresServer> server_;
};

// What a child says of two changes: the first is in its transaction when it is stopped, and
// the second waits behind it.
[[noreturn]] void ChangeTwice(const std::string& uri, int out) {
  {
    // The store, which calls it, is closed before it ends.
    const auto answer = [out](char name, const Result<JobMarks>& written) {
      const std::array<char, 2> said = {name, written                            ? 'w'
                                              : written.error().code == kTooLate ? 'l'
                                                                                 : 'f'};
      if (::write(out, said.data(), said.size()) != 2) ::_exit(1);
    };
    const auto store = OpenOrThrow(uri);
    store->Add({TargetChange{"a", "1.1x"}}, [&](const auto& written) { answer('1', written); });
    // The writer has taken the first one alone.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto until = BootClock::now() + std::chrono::seconds(5);
    store->Add(
        {TargetChange{"a", "1.2x"}}, [&](const auto& written) { answer('2', written); },
        std::nullopt, [until] { return BootClock::now() < until; });
    if (::write(out, "2a", 2) != 2) ::_exit(1);
  }
  ::_exit(0);
}

TEST_F(PostgresqlFailuresStoppedTest, ItWritesNothingOverWhatOthersWroteMeanwhile) {
  // The first change waits in the database, where the test can see it.
  {
    const auto store = OpenOrThrow(server_->Uri());
    ASSERT_TRUE(store->Write({SampleJob("a")}));
  }
  server_->Run(
      "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.target = '1.1x' THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$; "
      "CREATE TRIGGER waits BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION wait()");
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) ChangeTwice(server_->Uri(), ends[1]);
  ::close(ends[1]);
  const bool has_begun = WaitUntil([&] {
    return server_->Ask(
               "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'UPDATE jobs%' "
               "AND state = 'active'") == "1";
  });
  std::array<char, 2> text = {};
  EXPECT_EQ(::read(ends[0], text.data(), 2), 2);
  EXPECT_EQ(std::string(text.data(), 2), "2a");
  ::kill(child, SIGSTOP);
  EXPECT_TRUE(has_begun);
  const auto stopped = BootClock::now();
  // Before the write, as connecting takes its time.
  const auto store = OpenOrThrow(server_->Uri());
  Result<JobMarks> newer = store->Write({TargetChange{"a", "1.3x"}});
  for (int i = 0; i < 2 && !newer; ++i) newer = store->Write({TargetChange{"a", "1.3x"}});
  EXPECT_TRUE(newer) << newer.error().message;
  // The database has given the first one up after kStoppedSeconds.
  EXPECT_LT(BootClock::now() - stopped, std::chrono::seconds(10));
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::seconds(6) -
                                (BootClock::now() - stopped));
  ::kill(child, SIGCONT);
  std::string said;
  while (::read(ends[0], text.data(), 2) == 2) said.append(text.data(), 2);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(said, "1f2l");
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, "1.3x");
  EXPECT_EQ(JobOrThrow(*store, "a").marks, *newer);
}

TEST_F(PostgresqlFailuresStoppedTest, ADatabaseThatIsNotThereYetIsWaitedFor) {
  { ASSERT_TRUE(OpenOrThrow(server_->Uri())->Write({SampleJob("a")})); }
  server_->Kill();
  std::mutex mutex;
  std::vector<std::string> told;
  auto opened = std::async(std::launch::async, [&] {
    return Store::Open(
        server_->Uri(),
        [&](const std::string& sentence) {
          const std::lock_guard lock(mutex);
          told.push_back(sentence);
        },
        [] { return true; });
  });
  // Longer than a call of an open store would wait.
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(7)), std::future_status::timeout);
  server_->Start();
  ASSERT_EQ(opened.wait_for(kPatienceWithStops), std::future_status::ready);
  const auto store = opened.get();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->ListHeads()->size(), 1);
  const std::lock_guard lock(mutex);
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.front(), Mentions("reached"));
  EXPECT_THAT(told.front(), Mentions("waits"));
}

TEST_F(PostgresqlFailuresStoppedTest, WhoWaitsForItCanBeStopped) {
  server_->Kill();
  std::atomic<bool> keep_going = true;
  auto opened = std::async(std::launch::async, [&] {
    return Store::Open(server_->Uri(), {}, [&] { return keep_going.load(); });
  });
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  keep_going = false;
  ASSERT_EQ(opened.wait_for(std::chrono::seconds(2)), std::future_status::ready);
  EXPECT_EQ(opened.get().error().code, kTooLate);
}

TEST_F(PostgresqlFailuresStoppedTest, WhatNoWaitingMendsFailsAtOnce) {
  const auto open = [](const std::string& uri) {
    auto opened =
        std::async(std::launch::async, [uri] { return Store::Open(uri, {}, [] { return true; }); });
    if (opened.wait_for(kPatienceWithStops) != std::future_status::ready) std::abort();
    const auto store = opened.get();
    return store ? "" : store.error().message;
  };
  EXPECT_THAT(open(server_->Uri("nowhere")), Mentions("database", "role;"));
  EXPECT_THAT(open(server_->Uri("perseus", "nobody")), Mentions("database", "role;"));
}

}  // namespace

}  // namespace perseus::store
