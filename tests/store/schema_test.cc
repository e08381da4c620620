// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <array>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/backend.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

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
}  // namespace perseus::store
