// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the store says and keeps when the system does not play along.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What `work` returns, run in a process of its own.
std::string InChild(const std::function<std::string()>& work) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = work();
    [[maybe_unused]] const ssize_t written = ::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> buffer = {};
  for (ssize_t size = 0; (size = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

class StoreFailuresTest : public ::testing::Test {
 protected:
  std::string OpenError(const std::string& spec) const {
    const auto store = Store::Open(spec);
    return store ? "" : store.error().message;
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
};

TEST_F(StoreFailuresTest, WhatWaitsForADatabaseThatIsHeldIsCounted) {
  const auto store = OpenOrThrow(file_);
  EXPECT_EQ(store->counters().waiting, 0u);
  EXPECT_EQ(store->counters().waiting_seconds, 0);
  EXPECT_GE(store->counters().schema_version, 1);
  ASSERT_TRUE(store->counters().free_bytes);
  EXPECT_GT(*store->counters().free_bytes, 0u);
  soci::session other(soci::sqlite3, "dbname=" + file_);
  other << "BEGIN IMMEDIATE";
  std::promise<bool> written;
  store->Add({SampleJob("a")},
             [&](const Result<JobMarks>& result) { written.set_value(result.has_value()); });
  store->Add({SampleJob("b")}, [](const Result<JobMarks>&) {});
  while (store->counters().waiting_seconds == 0) std::this_thread::yield();
  EXPECT_EQ(store->counters().waiting, 2u);
  other << "ROLLBACK";
  EXPECT_TRUE(written.get_future().get());
  while (store->counters().waiting > 0) std::this_thread::yield();
  EXPECT_EQ(store->counters().waiting_seconds, 0);
}

TEST_F(StoreFailuresTest, SpecsThatCannotBe) {
  EXPECT_THAT(OpenError("file.db"), Mentions("sqlite:FILE"));
  EXPECT_THAT(OpenError("sqlite:"), Mentions("name"));
  EXPECT_THAT(OpenError("sqlite:a\"b"), Mentions("quote"));
  EXPECT_THAT(OpenError("postgresql://u:s/ecret@localhost:x/perseus"),
              AllOf(Mentions("read"), Not(HasSubstr("ecret"))));
  EXPECT_THAT(OpenError("mysql://root:secret@db/x"),
              AllOf(Mentions("'mysql'"), Not(HasSubstr("secret"))));
  EXPECT_THAT(OpenError("root.secret"), Not(HasSubstr("secret")));
  EXPECT_THAT(OpenError("sqlite:/nowhere/at/all/x.db"),
              AllOf(Mentions("/nowhere/at/all/x.db"), Not(HasSubstr(".lock"))));
  EXPECT_THAT(OpenError("sqlite:" + directory_.Path()), Mentions("directory"));
}

TEST_F(StoreFailuresTest, CheckSaysWhatShowsAtOnceAndMakesNothing) {
  EXPECT_TRUE(Store::Check("sqlite:" + file_));
  EXPECT_TRUE(Store::Check("postgresql://nobody@127.0.0.1:1/nothing"));
  for (const std::string& spec :
       {std::string("foo:bar"), std::string("postgresql://u:s/ecret@localhost:x/perseus"),
        std::string("sqlite:/nowhere/at/all/x.db"), "sqlite:" + directory_.Path()}) {
    EXPECT_FALSE(Store::Check(spec)) << spec;
  }
  EXPECT_EQ(directory_.Names(), std::vector<std::string>());
  directory_.Put("text", "stage,type\n");
  const Result<void> text = Store::Check("sqlite:" + directory_.Path("text"));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, Not(HasSubstr("::")));
  {
    const auto store = OpenOrThrow(file_);
    const Result<void> used = Store::Check("sqlite:" + file_);
    ASSERT_FALSE(used);
    EXPECT_THAT(used.error().message, Mentions("use"));
  }
  EXPECT_TRUE(Store::Check("sqlite:" + file_));
}

// Its head is a database's.
TEST_F(StoreFailuresTest, ADamagedDatabaseIsNotDescribedInTheLibrarysWords) {
  directory_.Put("store.sqlite", "SQLite format 3" + std::string(8192, '\0'));
  EXPECT_THAT(OpenError("sqlite:" + file_),
              AllOf(Mentions("damaged,"), Not(HasSubstr("sqlite3_"))));
}

TEST_F(StoreFailuresTest, ASecondProcessIsRefused) {
  const auto store = OpenOrThrow(file_);
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  const std::string said = InChild([&] { return OpenError("sqlite:" + file_); });
  EXPECT_THAT(said, Mentions("process", std::to_string(::getpid())));
  // The first goes on.
  EXPECT_TRUE(store->Write({SampleRank("a", 0)}));
}

TEST_F(StoreFailuresTest, WhatIsNoDatabaseIsCalledDamaged) {
  directory_.Put("store.sqlite", std::string(8192, 'x'));
  EXPECT_THAT(OpenError("sqlite:" + file_), Mentions("damaged,"));
}

TEST_F(StoreFailuresTest, AReadOnlyFileSaysSo) {
  { ASSERT_TRUE(OpenOrThrow(file_)->Write({SampleJob("a")})); }
  ASSERT_EQ(::chmod(directory_.Path().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(file_.c_str(), 0444), 0);
  ASSERT_EQ(::chmod((file_ + ".lock").c_str(), 0666), 0);
  const std::string said = InChild([&]() -> std::string {
    // The superuser may write anything.
    if (::geteuid() == 0 && ::setuid(65534) != 0) return "cannot become another user";
    return OpenError("sqlite:" + file_);
  });
  EXPECT_THAT(said, Mentions("read-only;", "written;"));
}

TEST_F(StoreFailuresTest, AFullDiskLosesNothingThatWasAcknowledged) {
  { ASSERT_TRUE(OpenOrThrow(file_)->Write({SampleJob("a")})); }
  const std::string said = InChild([&]() -> std::string {
    // The nearest thing to a full disk that needs no rights.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = 400'000, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto store = OpenOrThrow(file_);
    int written = 0;
    Result<JobMarks> last;
    for (; written < 10'000; ++written) {
      RankRecord rank = SampleRank("a", written);
      rank.dp_rank = written;
      rank.node = std::string(1000, 'n');
      last = store->Write({rank});
      if (!last) break;
    }
    if (last) return "never full";
    if (!store->counters().is_failing) return "failing, and says it is well";
    // Room again: the store goes on where it was.
    const rlimit room = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &room);
    RankRecord rank = SampleRank("a", written);
    rank.dp_rank = written;
    const Result<JobMarks> again = store->Write({rank});
    if (store->counters().is_failing) return "well, and says it is failing";
    return fmt::format("{} {}|{}", written, again.has_value(), last.error().message);
  });
  EXPECT_THAT(said, AllOf(Mentions("written"), HasSubstr(" true|"))) << said;
  const int written = std::stoi(said);
  EXPECT_GT(written, 10);
  EXPECT_EQ(JobOrThrow(*OpenOrThrow(file_), "a").ranks.size(), written + 1);
}

}  // namespace
}  // namespace perseus::store
