// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/facts_testing.h"
#include "server/store/store.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

class SchemaTest : public ::testing::Test {
 protected:
  soci::session Session() const { return soci::session(soci::sqlite3, "dbname=" + file_); }

  // The file that a released version left behind: tests/store/data/NAME, as
  // `sqlite3 FILE .dump` wrote it.
  void Restore(const std::string& name) const {
    std::ifstream stream("tests/store/data/" + name);
    ASSERT_TRUE(stream) << name;
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    soci::session sql = Session();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find(";\n", begin);
      ASSERT_NE(end, std::string::npos);
      sql << text.substr(begin, end - begin);
      begin = end + 2;
    }
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
};

TEST_F(SchemaTest, AFileOfVersion1IsMigratedWithAllItHolds) {
  Restore("version1.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 1);
  const StoredJob expected = JobOrThrow(*store, "a");
  EXPECT_EQ(expected.iterations_elsewhere.size(), 0);
  EXPECT_EQ(expected.ranks.size(), 2);
  EXPECT_EQ(expected.measurements.size(), 1);
  ASSERT_TRUE(expected.curve);
  EXPECT_EQ(expected.curve->plans.size(), 2);
  ASSERT_TRUE(expected.version);
  EXPECT_EQ(expected.version->version, 3);
  EXPECT_EQ(expected.stragglers.size(), 1);
  // And what is new can be written.
  ASSERT_TRUE(store->Write({IterationSummary{.job = "a", .plan_version = 3, .reports = 1}}));
  EXPECT_EQ(JobOrThrow(*store, "a").iterations_here.size(), 1);
}

TEST_F(SchemaTest, AFileOfVersion2IsMigratedWithAllItHolds) {
  Restore("version2.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 2);
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.marks, (JobMarks{.id = "a", .revision = 1, .rows = 1, .curve = 1}));
  EXPECT_EQ(a.job.detection_json, "");
  ASSERT_EQ(a.iterations_elsewhere.size(), 1);
  EXPECT_EQ(a.iterations_elsewhere[0].total_seconds, 50);
  EXPECT_EQ(a.iterations_elsewhere[0].total_joules, 1e6);
  EXPECT_EQ(a.iterations_elsewhere[0].square_seconds2, 0);
  const StoredJob b = JobOrThrow(*store, "b");
  EXPECT_EQ(b.marks, (JobMarks{.id = "b", .revision = 1, .rows = 1, .curve = 0}));
  ASSERT_EQ(b.iterations_elsewhere.size(), 2);
  EXPECT_EQ(b.iterations_elsewhere[1].plan_version, 2);
  ASSERT_TRUE(store->Write({DetectionChange{"b", "{}"}}, b.marks.revision));
  EXPECT_EQ(JobOrThrow(*store, "b").job.detection_json, "{}");
}

TEST_F(SchemaTest, AFileOfVersion3IsMigratedWithAllItHolds) {
  Restore("version3.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 3);
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.job.profile_source, "measured");
  EXPECT_EQ(a.job.sweep_round, 0);
  EXPECT_EQ(a.job.settled_round, 0);
  EXPECT_EQ(a.job.next_profile_csv, "");
  ASSERT_EQ(a.measurements.size(), 1);
  EXPECT_EQ(a.measurements[0].rows,
            (std::vector<MeasuredRow>{{.stage = 1,
                                       .type = ComputationType::kBackwardInput,
                                       .clock_mhz = 1410,
                                       .time_seconds = 0.1,
                                       .energy_joules = 1.0 / 3,
                                       .samples = 12}}));
  EXPECT_EQ(a.measurements[0].sweep_round, 0);
  EXPECT_FALSE(a.measurements[0].sweep);
  EXPECT_TRUE(a.measurements[0].notes.empty());
  const StoredJob b = JobOrThrow(*store, "b");
  EXPECT_EQ(b.job.profile_source, "");
  EXPECT_EQ(b.iterations_elsewhere.size(), 2);
  const StoredJob c = JobOrThrow(*store, "c");
  EXPECT_EQ(c.job.profile_source, "given");
  EXPECT_EQ(c.job.detection_json, R"({"mode":"act"})");
  EXPECT_EQ(c.marks, (JobMarks{.id = "c", .revision = 5, .rows = 2, .curve = 4}));
  EXPECT_TRUE(store->ListProfiles()->empty());
  ASSERT_TRUE(store->Write({StateChange{
      .job = "c", .state = JobState::kProfiling, .sweep_round = 1, .next_profile_csv = "x"}}));
  EXPECT_EQ(JobOrThrow(*store, "c").job.next_profile_csv, "x");
}

TEST_F(SchemaTest, AFileOfVersion4IsMigratedWithAllItHolds) {
  Restore("version4.sql");
  const auto store = OpenOrThrow(file_);
  const auto heads = store->ListHeads();
  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->size(), 3);
  EXPECT_EQ((*heads)[2].id, "b");
  EXPECT_EQ((*heads)[2].state, JobState::kFinished);
  // The time of its last version: nobody wrote down another.
  EXPECT_EQ((*heads)[2].finished_at_seconds, 3);
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.job.finished_at_seconds, 0);
  EXPECT_EQ(a.measurements[0].sweep_round, 2);
  EXPECT_EQ(store->ListProfiles()->size(), 1);
  EXPECT_EQ(JobOrThrow(*store, "b").iterations_elsewhere.size(), 3);
  // Work that was wanted by the wall clock keeps its order.
  EXPECT_EQ(store->ClaimWork(100).value(), "c");
  EXPECT_EQ(store->ClaimWork(100).value(), "a");
  ASSERT_TRUE(
      store->Write({StateChange{.job = "c", .state = JobState::kFinished, .at_seconds = 1.8e9}}));
  EXPECT_EQ(JobOrThrow(*store, "c").job.finished_at_seconds, 1.8e9);
}

TEST_F(SchemaTest, AFileOfVersion8IsMigratedWithAllItHolds) {
  Restore("version8.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 3);
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.job.conditions_json, "{\"a\":2}");
  EXPECT_EQ(a.job.owner, "");
  ASSERT_EQ(a.measurements.size(), 1);
  EXPECT_EQ(a.measurements[0].waiting.size(), 1);
  EXPECT_EQ(JobOrThrow(*store, "b").iterations_elsewhere.size(), 3);
  EXPECT_TRUE(a.history_here.empty());
  // And what is new can be written.
  const HistoryRow row = SampleHistory("a");
  ASSERT_TRUE(store->Write({row}));
  const auto rows = store->ListHistory(
      {.resolution = row.resolution, .since = row.start, .until = row.start + 1});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1);
  EXPECT_EQ((*rows)[0].row, row);
  EXPECT_EQ((*rows)[0].owner, "");
}

TEST_F(SchemaTest, AFileOfVersion9IsMigratedWithAllItHolds) {
  Restore("version9.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 3);
  EXPECT_TRUE(store->ListHeads()->front().labels.empty());
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.job.owner, "alice");
  EXPECT_TRUE(a.job.labels.empty());
  EXPECT_EQ(store->ListProfiles()->front().conditions_json, "{\"c\":3}");
  const auto days = [&] {
    return store->ListHistory({.resolution = Resolution::kDay, .until = 1'800'000'000}).value();
  };
  // Also of a job that was deleted. When its iterations began and ended, nobody wrote down.
  ASSERT_EQ(days().size(), 2);
  EXPECT_EQ(days()[0].row.joules, 1e6);
  EXPECT_EQ(days()[1].name, "llama");
  EXPECT_TRUE(days()[1].labels.empty());
  EXPECT_EQ(days()[1].row.first_seconds, 0);
  EXPECT_EQ(days()[1].row.last_seconds, 0);
  // And what is new can be written.
  ASSERT_TRUE(store->Write({LabelsChange{"a", {{"team", "vision"}}}}, a.marks.revision));
  EXPECT_EQ(JobOrThrow(*store, "a").job.labels, (JobLabels{{"team", "vision"}}));
  EXPECT_EQ(days()[0].labels, (JobLabels{{"team", "vision"}}));
}

// What it knew of the length of iterations was the mean of their ranks, and so it stays.
TEST_F(SchemaTest, AFileOfVersion10IsMigratedWithAllItHolds) {
  Restore("version10.sql");
  const auto store = OpenOrThrow(file_);
  ASSERT_EQ(store->ListHeads()->size(), 3);
  const StoredJob a = JobOrThrow(*store, "a");
  EXPECT_EQ(a.job.labels, (JobLabels{{"project", "x"}, {"team", "vision"}}));
  const auto days = [&] {
    return store->ListHistory({.resolution = Resolution::kDay, .until = 1'800'000'000}).value();
  };
  ASSERT_EQ(days().size(), 2);
  const NamedHistoryRow of_a = days()[0];
  EXPECT_EQ(of_a.row.first_seconds, 1'699'920'100.25);
  EXPECT_EQ(of_a.row.reports, 10);
  EXPECT_EQ(of_a.row.total_seconds, 50);
  EXPECT_EQ(of_a.row.joules, 1e6);
  EXPECT_EQ(of_a.iteration_seconds, 5);
  EXPECT_EQ(of_a.row.measured_times.reports, 9);
  EXPECT_EQ(of_a.measured_iteration_seconds, 5);
  EXPECT_EQ(of_a.row.measured_joules, 1e6);
  // Of this one no rank told its energy.
  EXPECT_EQ(days()[1].iteration_seconds, 2);
  EXPECT_EQ(days()[1].measured_iteration_seconds, 0);
  EXPECT_EQ(days()[1].row.measured_joules, 0);
  // What is new counts beside it: 20 iterations of 4 s each.
  HistoryRow row = of_a.row;
  row.reports = 160;
  row.times = {.iterations = 20, .reports = 160, .seconds = 80};
  row.measured_times = {};
  ASSERT_TRUE(store->Write({row}));
  EXPECT_DOUBLE_EQ(days()[0].iteration_seconds, (2 * 5 + 80) * 8.0 / 170);
  EXPECT_EQ(days()[0].measured_iteration_seconds, 5);
}

TEST_F(SchemaTest, ProfilesOfVersion4HaveNoConditions) {
  Restore("version4.sql");
  const auto store = OpenOrThrow(file_);
  const ProfileRecord old = store->ListProfiles()->front();
  EXPECT_EQ(old.conditions_json, "");
  ASSERT_TRUE(store->Write({ProfileConditions{"a", old.id, "{}"}}));
  EXPECT_EQ((*store->FindProfile(old.id))->conditions_json, "{}");
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

TEST_F(SchemaTest, AMigrationThatFailsLeavesTheOldTables) {
  Restore("version1.sql");
  Session() << "DROP INDEX measurements_of_rank";  // Version 2 wants to drop it.
  EXPECT_FALSE(Store::Open("sqlite:" + file_));
  int version = 0;
  Session() << "SELECT version FROM schema_version", soci::into(version);
  EXPECT_EQ(version, 1);
  int tables = 0;
  Session() << "SELECT COUNT(*) FROM sqlite_master WHERE name = 'iterations'", soci::into(tables);
  EXPECT_EQ(tables, 0);
}

}  // namespace
}  // namespace perseus::store
