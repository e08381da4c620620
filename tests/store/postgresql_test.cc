// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
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

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"
#include "support/postgres.h"

// One active server a store, and what a store says where there is no database that would do.
namespace perseus::store {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PostgresqlTest : public AnyStoreTest {
 protected:
  std::string OpenError(const std::string& spec) const {
    const auto store = Store::Open(spec);
    return store ? "" : store.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(On, PostgresqlTest, ::testing::Values(Kind::kPostgresql), KindName);

// One server at a time has a store.
class ActiveTest : public AnyStoreTest {
 protected:
  // As psql would.
  void RunSql(const std::string& statement) const {
    if (GetParam() == Kind::kSqlite) {
      soci::session(soci::sqlite3, "dbname=\"" + spec_.substr(7) + "\"") << statement;
    } else {
      SharedPostgres().Run(statement, DatabaseName());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(On, ActiveTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgresql, Kind::kPgBouncer),
                         KindName);

TEST_P(ActiveTest, ASecondServerStandsByUntilTheFirstEnds) {
  auto first = Store::Open(spec_, {}, {.address = "http://first:1"});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE((*first)->Write({SampleJob("a")}));
  std::promise<std::string> told;
  std::atomic<bool> is_told = false;
  auto second = std::async(std::launch::async, [&] {
    return Store::Open(spec_, {},
                       {.keep_going = [] { return true; },
                        .on_standby =
                            [&](const std::string& active) {
                              if (!is_told.exchange(true)) told.set_value(active);
                            }});
  });
  EXPECT_EQ(told.get_future().get(), "http://first:1");
  // The lease of the first is renewed, however long the second waits.
  EXPECT_EQ(second.wait_for(std::chrono::seconds(5)), std::future_status::timeout);
  EXPECT_TRUE((*first)->Write({TargetChange{"a", "1.1x"}}));
  const auto ended = std::chrono::steady_clock::now();
  first->reset();
  const auto store = second.get();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - ended, std::chrono::seconds(3));
  EXPECT_EQ(JobOrThrow(**store, "a").job.target, "1.1x");
  EXPECT_TRUE((*store)->Write({TargetChange{"a", "1.2x"}}));
}

TEST_P(ActiveTest, WhoLostTheStoreWritesNothingMore) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  EXPECT_TRUE(store->is_active());
  // As a successor does.
  RunSql("UPDATE active SET epoch = epoch + 1, server = 'another'");
  const Revision written = store->Write({TargetChange{"a", "1.1x"}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_THAT(written.error().message, Mentions("another", "server"));
  EXPECT_FALSE(store->is_active());
  EXPECT_TRUE(store->counters().why_not_active);
  EXPECT_FALSE(store->DeleteProfile("p"));
  RunSql("UPDATE active SET epoch = epoch - 1");
  EXPECT_FALSE(store->Write({TargetChange{"a", "1.2x"}}));
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, SampleJob("a").target);
}

TEST_P(ActiveTest, ALeaseThatNoServerCanHaveKeepsNobodyOut) {
  if (GetParam() == Kind::kSqlite) return;  // There the lock of a file says who has it.
  const std::string lease =
      "UPDATE active SET server = 'another', leased_until = EXTRACT(EPOCH FROM clock_timestamp()) ";
  Open();
  for (const char* const unlikely : {"+ 1000", "+ 4, instance = instance + 1"}) {
    RunSql(lease + unlikely);
    // Before that lease would end.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const auto store = Store::Open(
        spec_, {}, {.keep_going = [&] { return std::chrono::steady_clock::now() < until; }});
    EXPECT_TRUE(store) << unlikely << ": " << store.error().message;
  }
}

TEST_P(ActiveTest, AMissingRowIsSaid) {
  Open();
  RunSql("DELETE FROM active");
  const auto store = Store::Open(spec_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("names the active server is missing"));
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
    const Revision written = store->Write({rank});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidInput) << written.error().message;
  }
  EXPECT_FALSE(store->counters().is_failing);
  RankRecord odd = SampleRank("a", 2);
  odd.node = "'; DROP TABLE jobs; -- :x $1 \\ \"\n\xc3\xa9";
  ASSERT_TRUE(store->Write({odd}));
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.at(0).node, odd.node);
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
      store_->Add({rank}, [this, number = next_](const Revision& written) {
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
  for (const RankRecord& rank : JobOrThrow(store, "a").ranks) {
    ranks.insert(rank.rank);
  }
  return ranks;
}

bool IsIn(const std::set<int>& some, const std::set<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Until the store says that it is no longer the active server's.
bool WaitForTheEnd(const Store& store) {
  const auto until = std::chrono::steady_clock::now() + kPatienceWithTrouble;
  while (store.is_active()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

TEST_F(PostgresqlFailuresTest, NothingAcknowledgedIsLostWhenItIsKilled) {
  auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::mt19937 random(7);
  std::set<int> acknowledged;
  for (int kill = 0; kill < 4; ++kill) {
    {
      Registrar registrar(store.get(), 100'000 * kill);
      ASSERT_TRUE(registrar.WaitForMore(0)) << "stuck after kill " << kill;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
      if (kill % 2 == 0) {
        server_->Kill();
        server_->Start();
        // What the database holds is read anew.
        ASSERT_TRUE(WaitForTheEnd(*store));
      } else {
        // All connections end, and the database is still the same.
        const std::size_t before = registrar.acknowledged().size();
        server_->KillABackend();
        while (store->is_active() && registrar.acknowledged().size() <= before) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }
      acknowledged.merge(registrar.acknowledged());
    }
    store.reset();
    store = OpenOrThrow(server_->Uri());
    EXPECT_TRUE(IsIn(acknowledged, StoredRanks(*store)));
  }
  EXPECT_GT(acknowledged.size(), 10);
}

TEST_F(PostgresqlFailuresTest, WithoutADatabaseThereIsAnAnswer) {
  auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Kill();
  std::vector<std::future<Revision>> writes;
  for (int rank = 0; rank < 4; ++rank) {
    writes.push_back(std::async(std::launch::async,
                                [&, rank] { return store->Write({SampleRank("a", rank)}); }));
  }
  for (auto& write : writes) {
    ASSERT_EQ(write.wait_for(kPatienceWithTrouble), std::future_status::ready);
    EXPECT_EQ(write.get().error().code, ErrorCode::kIo);
  }
  EXPECT_TRUE(store->counters().is_failing);
  EXPECT_FALSE(store->LoadJob("a"));
  EXPECT_FALSE(store->ListHeads());
  EXPECT_TRUE(WaitForTheEnd(*store));
  server_->Start();
  store.reset();
  store = OpenOrThrow(server_->Uri());
  EXPECT_TRUE(store->Write({SampleRank("a", 9)}));
  EXPECT_EQ(StoredRanks(*store), std::set<int>{9});
}

// The connection goes while the transaction ends.
TEST_F(PostgresqlFailuresTest, AnUnknownEndIsTheEnd) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Run(
      "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT ON ranks DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION lose()");
  const Revision written = store->Write({SampleRank("a", 3)});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, Mentions("known", "whether"));
  EXPECT_FALSE(store->is_active());
  EXPECT_FALSE(store->Write({TargetChange{"a", "1.2x"}}));
}

TEST_F(PostgresqlFailuresTest, AFrozenDatabaseIsGivenUp) {
  const auto store = OpenOrThrow(server_->Uri());
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  server_->Signal(SIGSTOP);
  auto write = std::async(std::launch::async, [&] { return store->Write({SampleRank("a", 0)}); });
  auto read = std::async(std::launch::async, [&] { return store->LoadJob("a").has_value(); });
  const bool both = write.wait_for(kPatienceWithTrouble) == std::future_status::ready &&
                    read.wait_for(kPatienceWithTrouble) == std::future_status::ready;
  server_->Signal(SIGCONT);
  ASSERT_TRUE(both);
  EXPECT_FALSE(read.get());
  EXPECT_FALSE(write.get());
  EXPECT_FALSE(store->is_active());
}

TEST_F(PostgresqlFailuresTest, AReplicaTakesOverWithAllThatWasAcknowledged) {
  const auto standby = PostgresServer::MakeStandby(*server_);
  // The standby alone is no store to write to.
  const auto read_only = Store::Open(standby->Uri());
  ASSERT_FALSE(read_only);
  EXPECT_THAT(read_only.error().message, Mentions("standby;"));
  const std::string both = fmt::format("postgresql://postgres@/perseus?host={},{}&port=5432,5432",
                                       standby->sockets(), server_->sockets());
  auto store = OpenOrThrow(both);
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  EXPECT_EQ(store->history_seconds(), 0);
  std::set<int> acknowledged;
  {
    Registrar registrar(store.get(), 0);
    ASSERT_TRUE(registrar.WaitForMore(100));
    server_->Kill();
    standby->Promote();
    ASSERT_TRUE(WaitForTheEnd(*store));
    acknowledged = registrar.acknowledged();
  }
  store.reset();
  store = OpenOrThrow(both);
  EXPECT_TRUE(IsIn(acknowledged, StoredRanks(*store)));
  // Another one would lack some: versions of plans begin above all that there were.
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(static_cast<double>(store->history_seconds()), now, 60);
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

// What a child says of two changes: the first is in its transaction when the child is stopped, and
// the second waits behind it.
[[noreturn]] void ChangeTwice(const std::string& uri, int out) {
  {
    // The store, which calls it, is closed before it ends.
    const auto answer = [out](char name, const Revision& written) {
      const std::array<char, 2> said = {name, written ? 'w' : 'f'};
      if (::write(out, said.data(), said.size()) != 2) ::_exit(1);
    };
    const auto store = OpenOrThrow(uri);
    store->Add({TargetChange{"a", "1.1x"}}, [&](const auto& written) { answer('1', written); });
    // The writer has taken the first one alone.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    store->Add({TargetChange{"a", "1.2x"}}, [&](const auto& written) { answer('2', written); });
    if (::write(out, "2a", 2) != 2) ::_exit(1);
  }
  ::_exit(0);
}

TEST_F(PostgresqlFailuresStoppedTest, ItWritesNothingOverWhatItsSuccessorWrote) {
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
  const auto stopped = std::chrono::steady_clock::now();
  // The lease has ended then, and the database has given the first transaction up.
  const auto store = Store::Open(server_->Uri(), {}, {.keep_going = [] { return true; }});
  ASSERT_TRUE(store) << store.error().message;
  const Revision newer = (*store)->Write({TargetChange{"a", "1.3x"}});
  EXPECT_TRUE(newer) << newer.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(10));
  ::kill(child, SIGCONT);
  std::string said;
  while (::read(ends[0], text.data(), 2) == 2) said.append(text.data(), 2);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(said, "1f2f");
  EXPECT_EQ(JobOrThrow(**store, "a").job.target, "1.3x");
  EXPECT_EQ(JobOrThrow(**store, "a").revision, *newer);
}

TEST_F(PostgresqlFailuresStoppedTest, ADatabaseThatIsNotThereYetIsWaitedFor) {
  { ASSERT_TRUE(OpenOrThrow(server_->Uri())->Write({SampleJob("a")})); }
  server_->Kill();
  std::mutex mutex;
  std::vector<std::string> told;
  auto opened = std::async(std::launch::async, [&] {
    return Store::Open(server_->Uri(),
                       [&](const std::string& sentence) {
                         const std::lock_guard lock(mutex);
                         told.push_back(sentence);
                       },
                       {.keep_going = [] { return true; }});
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
    return Store::Open(server_->Uri(), {}, {.keep_going = [&] { return keep_going.load(); }});
  });
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  keep_going = false;
  ASSERT_EQ(opened.wait_for(std::chrono::seconds(2)), std::future_status::ready);
  EXPECT_EQ(opened.get().error().code, kTooLate);
}

TEST_F(PostgresqlFailuresStoppedTest, WhatNoWaitingMendsFailsAtOnce) {
  const auto open = [](const std::string& uri) {
    auto opened = std::async(std::launch::async, [uri] {
      return Store::Open(uri, {}, {.keep_going = [] { return true; }});
    });
    if (opened.wait_for(kPatienceWithStops) != std::future_status::ready) std::abort();
    const auto store = opened.get();
    return store ? "" : store.error().message;
  };
  EXPECT_THAT(open(server_->Uri("nowhere")), Mentions("database", "role;"));
  EXPECT_THAT(open(server_->Uri("perseus", "nobody")), Mentions("database", "role;"));
}

}  // namespace

}  // namespace perseus::store
