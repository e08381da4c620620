// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/copy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/backend.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

std::string ErrorOf(const Result<StoreCopy>& copy) { return copy ? "" : copy.error().message; }

soci::session SessionOf(const std::string& file) {
  return soci::session(soci::sqlite3, "dbname=" + file);
}

// Tables and their rows, as the database itself lists them.
std::set<std::pair<std::string, std::int64_t>> CatalogueOf(const std::string& file) {
  soci::session sql = SessionOf(file);
  std::vector<std::string> names(100);
  sql << "SELECT name FROM sqlite_master WHERE type = 'table'", soci::into(names);
  std::set<std::pair<std::string, std::int64_t>> tables;
  for (const std::string& name : names) {
    long long rows = 0;
    sql << "SELECT COUNT(*) FROM " + name, soci::into(rows);
    if (name != kVersionTable && name != kActiveTable) tables.emplace(name, rows);
  }
  return tables;
}

std::set<std::pair<std::string, std::int64_t>> TablesOf(const StoreCopy& copy) {
  std::set<std::pair<std::string, std::int64_t>> tables;
  for (const CopiedTable& table : copy.tables) tables.emplace(table.name, table.rows);
  return tables;
}

class CopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto store = OpenOrThrow(file_);
    for (const char* const job : {"a", "b"}) ASSERT_TRUE(store->Write(SampleFacts(job)));
    // More rows than one INSERT takes.
    std::vector<Fact> ranks;
    for (int rank = 8; rank < 300; ++rank) ranks.emplace_back(SampleRank("a", rank));
    ASSERT_TRUE(store->Write(ranks));
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
  std::string from_ = "sqlite:" + file_;
  std::string target_ = directory_.Path("copy.sqlite");
  std::string to_ = "sqlite:" + target_;
};

// A table that a later version adds is copied without a change of the copier.
TEST_F(CopyTest, EachTableOfTheDatabasesOwnCatalogueIsCopied) {
  std::vector<std::string> told;
  const auto copy = CopyStore(from_, to_, [&](const std::string& table) { told.push_back(table); });
  ASSERT_TRUE(copy) << ErrorOf(copy);
  EXPECT_EQ(copy->from, file_);
  EXPECT_EQ(copy->to, target_);
  EXPECT_EQ(TablesOf(*copy), CatalogueOf(file_));
  EXPECT_EQ(CatalogueOf(target_), CatalogueOf(file_));
  EXPECT_EQ(told.size(), copy->tables.size());
  EXPECT_GE(told.size(), 10u);
  EXPECT_TRUE(copy->left_out.empty());
  EXPECT_EQ(Described(*OpenOrThrow(target_)), Described(*OpenOrThrow(file_)));
  EXPECT_EQ(JobOrThrow(*OpenOrThrow(target_), "b").revision,
            JobOrThrow(*OpenOrThrow(file_), "b").revision);
}

TEST_F(CopyTest, TablesOfOthersAreNamedAndNotCopied) {
  SessionOf(file_) << "CREATE TABLE notes (x BLOB)";
  SessionOf(file_) << "ANALYZE";  // Makes a table of SQLite's own.
  const auto copy = CopyStore(from_, to_);
  ASSERT_TRUE(copy) << ErrorOf(copy);
  EXPECT_EQ(copy->left_out, std::vector<std::string>{"notes"});
}

TEST_F(CopyTest, AStoreOfANewerVersionIsRefused) {
  SessionOf(file_) << "UPDATE schema_version SET version = 99";
  EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions("newer", "99"));
  EXPECT_FALSE(std::filesystem::exists(target_));
  EXPECT_FALSE(std::filesystem::exists(target_ + ".lock"));
}

TEST_F(CopyTest, TheSameStoreTwiceIsRefused) {
  const std::string other_name = "sqlite:" + directory_.Path("./store.sqlite");
  const std::string before = Described(*OpenOrThrow(file_));
  for (const std::string& to : {from_, other_name}) {
    EXPECT_THAT(ErrorOf(CopyStore(from_, to)), Mentions("--from", "--to", "same")) << to;
  }
  EXPECT_EQ(Described(*OpenOrThrow(file_)), before);
}

TEST_F(CopyTest, WhatIsNotAStoreIsRefusedAndNothingIsMade) {
  const std::string missing = directory_.Path("missing.sqlite");
  EXPECT_THAT(ErrorOf(CopyStore("sqlite:" + missing, to_)), Mentions(missing, "copy"));
  EXPECT_FALSE(std::filesystem::exists(missing));
  EXPECT_FALSE(std::filesystem::exists(missing + ".lock"));
  std::ofstream(missing).flush();
  EXPECT_THAT(ErrorOf(CopyStore("sqlite:" + missing, to_)), Mentions(missing, "copy"));
  const std::string foreign = directory_.Path("foreign.sqlite");
  SessionOf(foreign) << "CREATE TABLE other (x INTEGER)";
  EXPECT_THAT(ErrorOf(CopyStore("sqlite:" + foreign, to_)), Mentions(foreign, "database"));
  EXPECT_THAT(ErrorOf(CopyStore(from_, "sqlite:" + foreign)), Mentions(foreign, "database"));
  EXPECT_THAT(ErrorOf(CopyStore("mysql://x", to_)), Mentions("mysql"));
  EXPECT_THAT(ErrorOf(CopyStore(from_, "sqlite:/nowhere/x")), Mentions("/nowhere/x", "folder"));
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST_F(CopyTest, ATargetThatIsNotEmptyIsRefusedAndStaysAsItWas) {
  { ASSERT_TRUE(OpenOrThrow(target_)->Write({SampleJob("c")})); }
  EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions(target_, "jobs", "1", "empty"));
  EXPECT_EQ(OpenOrThrow(target_)->ListHeads()->size(), 1u);
}

TEST_F(CopyTest, TablesWithoutRowsAreEmpty) {
  { OpenOrThrow(target_); }
  const auto copy = CopyStore(from_, to_);
  ASSERT_TRUE(copy) << ErrorOf(copy);
  EXPECT_EQ(CatalogueOf(target_), CatalogueOf(file_));
}

TEST_F(CopyTest, AStoreThatAServerUsesIsRefused) {
  {
    const auto server = OpenOrThrow(file_);
    EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions(file_, "use"));
    EXPECT_FALSE(std::filesystem::exists(target_));
  }
  const auto server = OpenOrThrow(target_);
  EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions(target_, "use"));
  EXPECT_TRUE(std::filesystem::exists(target_ + ".lock"));
}

class CopyToPostgresqlTest : public CopyTest {
 protected:
  void SetUp() override {
    CopyTest::SetUp();
    if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    static int databases = 0;
    database_ = fmt::format("copy{}", ++databases);
    SharedPostgres().Run("CREATE DATABASE " + database_);
    to_ = SharedPostgres().Uri(database_);
  }

  std::string Tables() const {
    return SharedPostgres().Ask("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'",
                                database_);
  }

  std::string database_;
};

TEST_F(CopyToPostgresqlTest, ThereAndBackAgainNothingIsLost) {
  const auto there = CopyStore(from_, to_);
  ASSERT_TRUE(there) << ErrorOf(there);
  EXPECT_EQ(TablesOf(*there), CatalogueOf(file_));
  EXPECT_EQ(Described(*OpenOrThrow(to_)), Described(*OpenOrThrow(file_)));
  const std::string back = directory_.Path("back.sqlite");
  const auto copy = CopyStore(to_, "sqlite:" + back);
  ASSERT_TRUE(copy) << ErrorOf(copy);
  EXPECT_EQ(CatalogueOf(back), CatalogueOf(file_));
  EXPECT_EQ(Described(*OpenOrThrow(back)), Described(*OpenOrThrow(file_)));
  // Both databases list the same tables.
  std::set<std::string> names;
  for (const auto& [name, rows] : CatalogueOf(file_)) {
    names.insert(name);
    EXPECT_EQ(SharedPostgres().Ask("SELECT COUNT(*) FROM " + name, database_),
              std::to_string(rows));
  }
  EXPECT_EQ(Tables(), std::to_string(names.size() + 2));
}

TEST_F(CopyToPostgresqlTest, ChangesGoOnAfterwards) {
  ASSERT_TRUE(CopyStore(from_, to_));
  const auto store = OpenOrThrow(to_);
  EXPECT_EQ(store->history_seconds(), 0);
  const auto written = store->Write({TargetChange{"b", "1.1x"}});
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(JobOrThrow(*store, "b").job.target, "1.1x");
}

TEST_F(CopyToPostgresqlTest, AStoreThatAServerUsesIsRefused) {
  {
    const auto server = Store::Open(to_, {}, {.address = "http://server:7787"});
    ASSERT_TRUE(server);
    EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions("use", "http://server:7787"));
  }
  const auto copy = CopyStore(from_, to_);
  ASSERT_TRUE(copy) << ErrorOf(copy);
  const auto server = OpenOrThrow(to_);
  const std::string back = directory_.Path("back.sqlite");
  EXPECT_THAT(ErrorOf(CopyStore(to_, "sqlite:" + back)), Mentions("use", "servers"));
  EXPECT_FALSE(std::filesystem::exists(back));
}

// Unquoted, PostgreSQL would take it for another name.
TEST_F(CopyToPostgresqlTest, ASchemaMayHaveCapitalsAndSigns) {
  SharedPostgres().Run("CREATE SCHEMA \"My-Schema\"", database_);
  SharedPostgres().Run("ALTER DATABASE " + database_ + " SET search_path = \"My-Schema\"");
  const auto there = CopyStore(from_, to_);
  ASSERT_TRUE(there) << ErrorOf(there);
  EXPECT_EQ(TablesOf(*there), CatalogueOf(file_));
  EXPECT_EQ(Tables(), "0");  // In the schema public.
  EXPECT_EQ(Described(*OpenOrThrow(to_)), Described(*OpenOrThrow(file_)));
  const auto back = CopyStore(to_, "sqlite:" + directory_.Path("back.sqlite"));
  ASSERT_TRUE(back) << ErrorOf(back);
  EXPECT_EQ(TablesOf(*back), CatalogueOf(file_));
  EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions("jobs", "2", "empty"));
}

TEST_F(CopyToPostgresqlTest, TheSameDatabaseByAnotherAddressIsRefused) {
  ASSERT_TRUE(CopyStore(from_, to_));
  EXPECT_THAT(ErrorOf(CopyStore(to_, to_ + "&connect_timeout=9")), Mentions("same"));
}

TEST_F(CopyToPostgresqlTest, WithoutRightsOrDatabaseNothingIsWritten) {
  const PostgresServer& server = SharedPostgres();
  server.Run("CREATE ROLE copier LOGIN");
  server.Run("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database_);
  EXPECT_THAT(ErrorOf(CopyStore(from_, server.Uri(database_, "copier"))),
              Mentions("right", "owner"));
  EXPECT_THAT(ErrorOf(CopyStore(from_, server.Uri("nowhere"))), Mentions("database", "role;"));
  EXPECT_EQ(Tables(), "0");
}

// SQLite keeps what PostgreSQL refuses: text that is not UTF-8.
TEST_F(CopyToPostgresqlTest, ARowThatTheTargetRefusesIsNamedAndNothingIsWritten) {
  SessionOf(file_) << "UPDATE versions SET reason = CAST(x'ff' AS TEXT)";
  EXPECT_THAT(ErrorOf(CopyStore(from_, to_)), Mentions("table", "versions"));
  EXPECT_EQ(Tables(), "0");
}

TEST_F(CopyToPostgresqlTest, KilledInTheMiddleTheTargetStaysEmpty) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto copy = CopyStore(from_, to_, [&](const std::string& table) {
      if (table != "stragglers") return;
      const char byte = 0;
      if (::write(ends[1], &byte, 1) == 1) ::pause();
    });
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(Tables(), "0");
  const auto again = CopyStore(from_, to_);
  ASSERT_TRUE(again) << ErrorOf(again);
  EXPECT_EQ(Described(*OpenOrThrow(to_)), Described(*OpenOrThrow(file_)));
}

}  // namespace
}  // namespace perseus::store
