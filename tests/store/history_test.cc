// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the store keeps of iterations by minute, hour and day, and for how long.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"

namespace perseus::store {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kToday = 20'000 * kDay;

class HistoryTest : public AnyStoreTest {
 protected:
  void SetUp() override {
    AnyStoreTest::SetUp();
    if (!IsSkipped()) store_ = Open();
  }

  static HistoryRow Row(Resolution resolution, std::int64_t start, std::int64_t reports = 1) {
    HistoryRow row = SampleHistory("a");
    row.resolution = resolution;
    row.start = start;
    row.reports = reports;
    return row;
  }
  void Write(const std::vector<Fact>& facts) const { ASSERT_TRUE(store_->Write(facts)); }
  std::vector<NamedHistoryRow> Rows(Resolution resolution, const std::string& job = "",
                                    std::int64_t since = 0,
                                    std::int64_t until = kToday + kDay) const {
    return store_
        ->ListHistory({.job = job, .resolution = resolution, .since = since, .until = until})
        .value();
  }

  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(On, HistoryTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(HistoryTest, ARowIsReadAsItWasWritten) {
  Write({SampleJob("a")});
  const HistoryRow row = SampleHistory("a");
  Write({row});
  ASSERT_EQ(Rows(row.resolution).size(), 1U);
  EXPECT_EQ(Rows(row.resolution)[0].row, row);
  EXPECT_EQ(Rows(row.resolution)[0].name, SampleJob("a").name);
  EXPECT_EQ(Rows(row.resolution)[0].owner, "alice");
  EXPECT_EQ(Rows(row.resolution)[0].labels, SampleJob("a").labels);
  EXPECT_EQ(JobOrThrow(*store_, "a").history_here, std::vector<HistoryRow>{row});
  EXPECT_TRUE(JobOrThrow(*store_, "a", Parts::kIterations).history_here.empty());
}

TEST_P(HistoryTest, AServerReplacesItsRowAndServersAddUp) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kDay, kToday, 3)});
  Write({Row(Resolution::kDay, kToday, 5)});
  EXPECT_EQ(Rows(Resolution::kDay)[0].row.reports, 5);
  store_.reset();
  store_ = Open();
  EXPECT_TRUE(JobOrThrow(*store_, "a").history_here.empty());
  Write({Row(Resolution::kDay, kToday, 2)});
  const std::vector<NamedHistoryRow> rows = Rows(Resolution::kDay);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].row.reports, 7);
  EXPECT_EQ(rows[0].row.joules, 2e6);
  EXPECT_EQ(rows[0].row.ranks, 8);
}

// Of several servers, the span from the first to the last; not known where one does not know it.
TEST_P(HistoryTest, ARowSaysFromWhenToWhen) {
  Write({SampleJob("a")});
  const auto row = [](double first, double last) {
    HistoryRow each = Row(Resolution::kDay, kToday);
    each.first_seconds = first;
    each.last_seconds = last;
    return each;
  };
  const auto first_and_last = [&] {
    const HistoryRow all = Rows(Resolution::kDay).at(0).row;
    return std::pair(all.first_seconds, all.last_seconds);
  };
  Write({row(20, 30)});
  Write({row(20, 40)});
  EXPECT_EQ(first_and_last(), std::pair(20.0, 40.0));
  store_.reset();
  store_ = Open();
  Write({row(10, 35)});
  EXPECT_EQ(first_and_last(), std::pair(10.0, 40.0));
}

// An iteration is as long as its slowest rank, whichever server that one reports to.
TEST_P(HistoryTest, IterationsOfSeveralServersCountOnce) {
  Write({SampleJob("a")});
  const auto row = [](IterationTimes times) {
    HistoryRow each = Row(Resolution::kDay, kToday);
    each.times = each.measured_times = times;
    return each;
  };
  const auto expect = [&](double seconds) {
    const NamedHistoryRow all = Rows(Resolution::kDay).at(0);
    EXPECT_EQ(all.iteration_seconds, seconds);
    EXPECT_EQ(all.measured_iteration_seconds, seconds);
  };
  Write({row({})});
  expect(0);
  // All 8 ranks report to one server.
  Write({row({.iterations = 4, .reports = 32, .seconds = 8})});
  expect(2);
  // A second one goes on in its place: the mean of all 8 iterations.
  store_.reset();
  store_ = Open();
  Write({row({.iterations = 4, .reports = 32, .seconds = 4})});
  expect(1.5);
  // Two that each hear of 4 ranks, of the same iterations: the slowest rank's.
  Write({JobGone{"a"}});
  Write({SampleJob("b")});
  const auto of_b = [&](IterationTimes times) {
    HistoryRow each = row(times);
    each.job = "b";
    return each;
  };
  const auto seconds_of_b = [&] { return Rows(Resolution::kDay, "b").at(0).iteration_seconds; };
  Write({of_b({.iterations = 4, .reports = 16, .seconds = 8})});
  EXPECT_EQ(seconds_of_b(), 2);
  store_.reset();
  store_ = Open();
  Write({of_b({.iterations = 4, .reports = 16, .seconds = 4})});
  EXPECT_EQ(seconds_of_b(), 2);
  EXPECT_EQ(Rows(Resolution::kDay, "b").at(0).row.times,
            (IterationTimes{.iterations = 8, .reports = 32, .seconds = 12}));
}

TEST_P(HistoryTest, RowsHaveTheLabelsThatTheirJobHasNow) {
  Write({SampleJob("a")});
  JobRecord bare = SampleJob("b");
  bare.labels = {};
  Write({bare});
  for (const char* const job : {"a", "b"}) {
    HistoryRow row = Row(Resolution::kDay, kToday);
    row.job = job;
    Write({row});
  }
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, SampleJob("a").labels);
  EXPECT_TRUE(Rows(Resolution::kDay).at(1).labels.empty());
  Write({LabelsChange{"a", {{"team", "language"}}}});
  Write({LabelsChange{"b", {{"team", "vision"}}}});
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, (JobLabels{{"team", "language"}}));
  EXPECT_EQ(Rows(Resolution::kDay).at(1).labels, (JobLabels{{"team", "vision"}}));
  Write({LabelsChange{"b", {}}});
  EXPECT_TRUE(Rows(Resolution::kDay).at(1).labels.empty());
  EXPECT_TRUE(JobOrThrow(*store_, "b").job.labels.empty());
  // They stay with the days; a job without days takes its labels along.
  Write({JobGone{"a"}});
  EXPECT_EQ(Rows(Resolution::kDay).at(0).labels, (JobLabels{{"team", "language"}}));
  EXPECT_FALSE(store_->Write({LabelsChange{"a", {}}}));
}

TEST_P(HistoryTest, OnlyTheLastRowsOfAServerAreItsState) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kMinute, kToday + 60),
         Row(Resolution::kHour, kToday)});
  EXPECT_EQ(JobOrThrow(*store_, "a").history_here.size(), 2U);
}

TEST_P(HistoryTest, RowsOfOneJobAndTimeAreRead) {
  Write({SampleJob("a")});
  Write({SampleJob("b")});
  HistoryRow other = Row(Resolution::kMinute, kToday);
  other.job = "b";
  Write({other});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kMinute, kToday + 60),
         Row(Resolution::kMinute, kToday + 120)});
  const std::vector<NamedHistoryRow> rows =
      Rows(Resolution::kMinute, "a", kToday + 60, kToday + 120);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].row.start, kToday + 60);
  EXPECT_EQ(Rows(Resolution::kMinute).size(), 4U);
}

TEST_P(HistoryTest, OldMinutesAndHoursAreForgottenAndDaysStay) {
  Write({SampleJob("a")});
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour, Resolution::kDay}) {
    for (const std::int64_t days : {0, 1, 2, 31, 32}) {
      Write({Row(resolution, kToday - days * kDay)});
    }
  }
  ASSERT_TRUE(store_->ForgetHistory(static_cast<double>(kToday)));
  EXPECT_EQ(Rows(Resolution::kMinute).size(), 2U);
  EXPECT_EQ(Rows(Resolution::kHour).size(), 4U);
  EXPECT_EQ(Rows(Resolution::kDay).size(), 5U);
}

// More than one transaction deletes.
TEST_P(HistoryTest, ManyRowsAreForgotten) {
  Write({SampleJob("a")});
  for (int i = 0; i < 3; ++i) {
    std::vector<Fact> rows;
    for (int j = 0; j < 400; ++j) {
      rows.emplace_back(Row(Resolution::kMinute, 60 * (400 * i + j)));
    }
    Write(rows);
  }
  ASSERT_TRUE(store_->ForgetHistory(static_cast<double>(kToday)));
  EXPECT_TRUE(Rows(Resolution::kMinute).empty());
}

TEST_P(HistoryTest, DaysStayWhenTheJobGoes) {
  Write({SampleJob("a")});
  Write({Row(Resolution::kMinute, kToday), Row(Resolution::kHour, kToday),
         Row(Resolution::kDay, kToday)});
  Write({JobGone{"a"}});
  EXPECT_TRUE(Rows(Resolution::kMinute).empty());
  EXPECT_TRUE(Rows(Resolution::kHour).empty());
  ASSERT_EQ(Rows(Resolution::kDay).size(), 1U);
  EXPECT_EQ(Rows(Resolution::kDay)[0].name, SampleJob("a").name);
  // And nothing more is written of it.
  EXPECT_FALSE(store_->Write({Row(Resolution::kDay, kToday, 9)}));
  EXPECT_EQ(Rows(Resolution::kDay)[0].row.reports, 1);
}

}  // namespace
}  // namespace perseus::store
