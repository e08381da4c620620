// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/backend.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"

// The files of a store of SQLite, and others' hands on them; and its clock.
namespace perseus::store {

namespace {

using ::testing::AllOf;
// SOCI has put SQLite's own functions there.
using sqlite_api::sqlite3_int64;
using sqlite_api::sqlite3_vfs;
using sqlite_api::sqlite3_vfs_find;

class SqliteFilesTest : public ::testing::Test {
 protected:
  std::string ErrorOfOpen(const std::string& file) const {
    const auto store = Store::Open("sqlite:" + file);
    return store ? "" : store.error().message;
  }

  // What the store says after `harm` was done to its files.
  void ExpectRefusedAfter(const std::function<void()>& harm) {
    auto store = OpenOrThrow(file_);
    ASSERT_TRUE(store->Write(SampleFacts("a")));
    EXPECT_FALSE(store->counters().is_failing);
    harm();
    EXPECT_TRUE(store->counters().is_failing);
    EXPECT_NE(store->counters().last_error, "");
    const auto written = store->Write({SampleRank("a", 1)});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kIo);
    EXPECT_THAT(written.error().message, AllOf(Mentions("deleted"), Mentions("restore")));
    // What is there can be read: plans go on.
    EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 2);
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
};

TEST_F(SqliteFilesTest, ALockThatIsALinkIsNotWrittenThrough) {
  directory_.Put("precious", "root:x:0:0\n");
  const std::string lock = file_ + ".lock";
  std::filesystem::create_symlink(directory_.Path("precious"), lock);
  EXPECT_THAT(ErrorOfOpen(file_), Mentions(lock));
  std::filesystem::remove(lock);
  std::filesystem::create_hard_link(directory_.Path("precious"), lock);
  EXPECT_THAT(ErrorOfOpen(file_), Mentions("link,"));
  std::filesystem::remove(lock);
  directory_.Put("store.sqlite.lock", "somebody's notes\n");
  EXPECT_THAT(ErrorOfOpen(file_), Mentions("link,"));
  EXPECT_EQ(directory_.Get("precious"), "root:x:0:0\n");
  EXPECT_EQ(directory_.Get("store.sqlite.lock"), "somebody's notes\n");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(SqliteFilesTest, RootWritesNothingWhereOthersMayPutLinks) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may write anywhere";
  ASSERT_EQ(::chmod(directory_.Path().c_str(), 0777), 0);
  EXPECT_THAT(ErrorOfOpen(file_), Mentions("users", "folder"));
  ASSERT_EQ(::chown(directory_.Path().c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(directory_.Path().c_str(), 0755), 0);
  EXPECT_THAT(ErrorOfOpen(file_), Mentions("folder", "belongs"));
  // As in /tmp.
  ASSERT_EQ(::chown(directory_.Path().c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(directory_.Path().c_str(), 01777), 0);
  directory_.Put("store.sqlite.lock", "");
  ASSERT_EQ(::chown((file_ + ".lock").c_str(), 65534, 65534), 0);
  EXPECT_THAT(ErrorOfOpen(file_), Mentions("file", "belongs"));
  ASSERT_EQ(::unlink((file_ + ".lock").c_str()), 0);
  EXPECT_EQ(ErrorOfOpen(file_), "");
}

TEST_F(SqliteFilesTest, ADatabaseDeletedUnderTheStoreIsNoticed) {
  ExpectRefusedAfter([&] { std::filesystem::remove(file_); });
}

TEST_F(SqliteFilesTest, ADatabaseReplacedUnderTheStoreIsNoticed) {
  ExpectRefusedAfter([&] {
    std::filesystem::copy_file(file_, directory_.Path("copy"));
    std::filesystem::rename(directory_.Path("copy"), file_);
  });
}

TEST_F(SqliteFilesTest, ALogDeletedUnderTheStoreIsNoticed) {
  ExpectRefusedAfter([&] { ASSERT_TRUE(std::filesystem::remove(file_ + "-wal")); });
}

TEST_F(SqliteFilesTest, ALockDeletedUnderTheStoreIsNoticed) {
  ExpectRefusedAfter([&] { std::filesystem::remove(file_ + ".lock"); });
}

TEST_F(SqliteFilesTest, AStoreBehindALinkIsAStore) {
  const TemporaryDirectory elsewhere;
  { ASSERT_TRUE(OpenOrThrow(elsewhere.Path("real"))->Write({SampleJob("b")})); }
  std::filesystem::create_symlink(elsewhere.Path("real"), file_);
  ExpectRefusedAfter([&] { ASSERT_TRUE(std::filesystem::remove(elsewhere.Path("real-wal"))); });
}

// Another program holds the database, so that a commit waits for it.
TEST_F(SqliteFilesTest, WhoReadsDoesNotWaitForACommit) {
  const auto store = OpenOrThrow(file_);
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  soci::session other(soci::sqlite3, "dbname=" + file_);
  other << "BEGIN IMMEDIATE";
  auto write = std::async(std::launch::async, [&] { return store->Write({SampleRank("a", 1)}); });
  ASSERT_EQ(write.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 2);
  EXPECT_EQ(store->ListHeads()->size(), 1);
  EXPECT_EQ(store->counters().commits, 1);
  EXPECT_EQ(write.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  other << "ROLLBACK";
  EXPECT_TRUE(write.get());
}

}  // namespace

// What the store says and keeps when the system does not play along.

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
             [&](const Revision& result) { written.set_value(result.has_value()); });
  store->Add({SampleJob("b")}, [](const Revision&) {});
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
    // A server stands by for such a store.
    EXPECT_TRUE(Store::Check("sqlite:" + file_));
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
  EXPECT_THAT(said, Mentions("server", std::to_string(::getpid())));
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
    Revision last;
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
    const Revision again = store->Write({rank});
    if (store->counters().is_failing) return "well, and says it is failing";
    return fmt::format("{} {}|{}", written, again.has_value(), last.error().message);
  });
  EXPECT_THAT(said, AllOf(Mentions("written"), HasSubstr(" true|"))) << said;
  const int written = std::stoi(said);
  EXPECT_GT(written, 10);
  EXPECT_EQ(JobOrThrow(*OpenOrThrow(file_), "a").ranks.size(), written + 1);
}

class SchemaTest : public ::testing::Test {
 protected:
  soci::session Session() const { return soci::session(soci::sqlite3, "dbname=" + file_); }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
};

// A later program: this one's steps, and one of its own.
class LaterSchemaTest : public SchemaTest {
 protected:
  void SetUp() override { ASSERT_TRUE(OpenOrThrow(file_)->Write(SampleFacts("a"))); }

  Result<void> MigrateTo(SchemaStep last) const {
    const auto backend = OpenBackend("sqlite:" + file_).value();
    std::vector<SchemaStep> steps(SchemaSteps().begin(), SchemaSteps().end());
    steps.push_back(last);
    const auto sql = backend->Connect();
    try {
      *sql << backend->BeginToMigrate();
      const Result<void> migrated = Migrate(*sql, *backend, steps);
      *sql << backend->Commit();
      return migrated;
    } catch (const std::exception& exception) {
      return tl::unexpected(backend->FaultOf(exception).error);
    }
  }

  int Version() const {
    int version = 0;
    Session() << "SELECT version FROM schema_version", soci::into(version);
    return version;
  }
};

constexpr std::array<std::string_view, 3> kLater = {
    "ALTER TABLE jobs ADD COLUMN later TEXT NOT NULL DEFAULT ''",
    "UPDATE jobs SET later = 'was ' || state",
    "CREATE TABLE added (job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE)",
};

TEST_F(LaterSchemaTest, AFileOfThisVersionIsMigratedWithAllItHolds) {
  const std::string before = Described(*OpenOrThrow(file_));
  const auto migrated = MigrateTo(kLater);
  ASSERT_TRUE(migrated) << migrated.error().message;
  EXPECT_EQ(Version(), kSchemaVersion + 1);
  std::string later;
  Session() << "SELECT later FROM jobs", soci::into(later);
  EXPECT_EQ(later, "was characterizing");
  // A second start of that program changes nothing, and this one does not touch its tables.
  ASSERT_TRUE(MigrateTo(kLater));
  EXPECT_FALSE(Store::Open("sqlite:" + file_));
  // All else is as it was.
  Session() << "UPDATE schema_version SET version = 1";
  EXPECT_EQ(Described(*OpenOrThrow(file_)), before);
}

TEST_F(LaterSchemaTest, AMigrationThatFailsLeavesTheOldTables) {
  constexpr std::array<std::string_view, 2> kBad = {kLater[2], "DROP INDEX none"};
  EXPECT_FALSE(MigrateTo(kBad));
  EXPECT_EQ(Version(), kSchemaVersion);
  int tables = 0;
  Session() << "SELECT COUNT(*) FROM sqlite_master WHERE name = 'added'", soci::into(tables);
  EXPECT_EQ(tables, 0);
}

TEST_F(SchemaTest, MigratingTwiceChangesNothing) {
  { EXPECT_TRUE(OpenOrThrow(file_)->Write(SampleFacts("a"))); }
  const std::string before = Described(*OpenOrThrow(file_));
  EXPECT_EQ(Described(*OpenOrThrow(file_)), before);
  int version = 0;
  Session() << "SELECT version FROM schema_version", soci::into(version);
  EXPECT_EQ(version, kSchemaVersion);
}

TEST_F(SchemaTest, ANewerStoreIsRefused) {
  { OpenOrThrow(file_); }
  Session() << "UPDATE schema_version SET version = 99";
  const auto store = Store::Open("sqlite:" + file_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, Mentions("99"));
}

TEST_F(SchemaTest, AnotherProgramsDatabaseIsLeftAlone) {
  Session() << "CREATE TABLE other (x INTEGER)";
  const auto store = Store::Open("sqlite:" + file_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, Mentions("store", "another"));
  int tables = 0;
  Session() << "SELECT COUNT(*) FROM sqlite_master", soci::into(tables);
  EXPECT_EQ(tables, 1);
  // Its file and its folder, too.
  std::string mode;
  Session() << "PRAGMA journal_mode", soci::into(mode);
  EXPECT_EQ(mode, "delete");
  EXPECT_FALSE(std::filesystem::exists(file_ + ".lock"));
}

}  // namespace

// A process writes facts, tells of each that was acknowledged, and is killed
// at a random moment: what it told of must be there.

namespace {

constexpr int kKills = 40;
constexpr int kAtOnce = 8;

// Registers rank after rank from `first` on, several at once, and writes each
// acknowledged number to `out`.
[[noreturn]] void RegisterForEver(const std::string& file, std::int32_t first, int out) {
  const auto store = OpenOrThrow(file);
  std::atomic<int> under_way = 0;
  for (std::int32_t rank = first;; ++rank) {
    while (under_way >= kAtOnce) std::this_thread::yield();
    ++under_way;
    RankRecord record = SampleRank("a", rank);
    record.dp_rank = rank;
    store->Add({record}, [&under_way, rank, out](const Revision& written) {
      --under_way;
      if (!written || ::write(out, &rank, sizeof rank) != sizeof rank) ::_exit(1);
    });
  }
}

TEST(StoreKillTest, NothingAcknowledgedIsLost) {
  const TemporaryDirectory directory;
  const std::string file = directory.Path("store.sqlite");
  { ASSERT_TRUE(OpenOrThrow(file)->Write({SampleJob("a")})); }
  std::mt19937 random(7);
  std::vector<std::int32_t> acknowledged;
  std::int32_t next = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    std::array<int, 2> ends = {};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) RegisterForEver(file, next, ends[1]);
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::int32_t rank = 0;
    while (::read(ends[0], &rank, sizeof rank) == sizeof rank) acknowledged.push_back(rank);
    ::close(ends[0]);

    std::vector<std::int32_t> stored;
    for (const RankRecord& record : JobOrThrow(*OpenOrThrow(file), "a").ranks)
      stored.push_back(record.rank);
    std::sort(acknowledged.begin(), acknowledged.end());
    ASSERT_TRUE(
        std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()))
        << "after kill " << kill;
    next = stored.empty() ? 0 : stored.back() + 1;
  }
  EXPECT_GT(acknowledged.size(), kKills);
}

}  // namespace

}  // namespace perseus::store
