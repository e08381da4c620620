// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Several stores on one database of PostgreSQL, and what they say where there is
// none that would do.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

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
}  // namespace perseus::store
