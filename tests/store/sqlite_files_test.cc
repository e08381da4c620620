// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The files of a store of SQLite, and others' hands on them; and its clock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "common/temporary_directory.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"

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
    EXPECT_FALSE(store->ClaimWork(1));
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
  EXPECT_TRUE(store->NowSeconds());
  EXPECT_EQ(store->counters().commits, 1);
  EXPECT_EQ(write.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  other << "ROLLBACK";
  EXPECT_TRUE(write.get());
}

// While it lives, SQLite's wall clock is `hours` ahead of the real one.
class JumpingClock {
 public:
  JumpingClock() {
    vfs_ = sqlite3_vfs_find(nullptr);
    real_ = vfs_->xCurrentTimeInt64;
    vfs_->xCurrentTimeInt64 = [](sqlite3_vfs* vfs, sqlite3_int64* milliseconds) {
      const int result = real_(vfs, milliseconds);
      *milliseconds += hours_ * 3'600'000;
      return result;
    };
  }
  ~JumpingClock() { vfs_->xCurrentTimeInt64 = real_; }
  JumpingClock(const JumpingClock&) = delete;
  JumpingClock& operator=(const JumpingClock&) = delete;
  static void JumpTo(int hours) { hours_ = hours; }

 private:
  sqlite3_vfs* vfs_;
  inline static int (*real_)(sqlite3_vfs*, sqlite3_int64*) = nullptr;
  inline static std::atomic<int> hours_ = 0;
};

TEST_F(SqliteFilesTest, AClockThatIsSetNeitherBlocksWorkNorDoublesIt) {
  const JumpingClock clock;
  JumpingClock::JumpTo(0);
  auto store = OpenOrThrow(file_);
  ASSERT_TRUE(store->Write({SampleJob("a"), WorkWanted{"a"}}));
  const double before = store->NowSeconds().value();
  EXPECT_EQ(store->ClaimWork(600).value(), "a");
  JumpingClock::JumpTo(1);
  EXPECT_GT(store->NowSeconds().value(), before + 3000);
  EXPECT_EQ(store->ClaimWork(600).value(), std::nullopt);  // Still leased.
  ASSERT_TRUE(store->RenewWork("a", 0.01).value());        // As one that failed: soon again.
  JumpingClock::JumpTo(-1);
  std::optional<std::string> again;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!again && std::chrono::steady_clock::now() < until) again = store->ClaimWork(600).value();
  EXPECT_EQ(again, "a");
  // What was wanted before the clock was set back is first.
  JumpingClock::JumpTo(0);
  ASSERT_TRUE(store->Write({SampleJob("b"), WorkWanted{"b"}}));
  JumpingClock::JumpTo(-1);
  ASSERT_TRUE(store->Write({SampleJob("c"), WorkWanted{"c"}}));
  store.reset();
  store = OpenOrThrow(file_);
  EXPECT_EQ(store->ClaimWork(600).value(), "a");
  EXPECT_EQ(store->ClaimWork(600).value(), "b");
}

}  // namespace
}  // namespace perseus::store
