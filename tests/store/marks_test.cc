// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Revisions of jobs: what counts as a change, and who may make one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

class MarksTest : public AnyStoreTest {
 protected:
  void SetUp() override {
    AnyStoreTest::SetUp();
    if (!IsSkipped()) store_ = Open();
  }

  JobMarks Written(const std::vector<Fact>& facts,
                   std::optional<std::int64_t> expected = std::nullopt) const {
    const Result<JobMarks> marks = store_->Write(facts, expected);
    if (!marks) ADD_FAILURE() << marks.error().message;
    return marks.value_or(JobMarks{});
  }
  Error Refused(const std::vector<Fact>& facts,
                std::optional<std::int64_t> expected = std::nullopt) const {
    const Result<JobMarks> marks = store_->Write(facts, expected);
    if (!marks) return marks.error();
    ADD_FAILURE() << "not refused";
    return {};
  }
  std::vector<JobMarks> Listed() const {
    const Result<std::vector<JobHead>> heads = store_->ListHeads();
    std::vector<JobMarks> marks;
    for (const JobHead& head : heads.value()) marks.push_back(head.marks);
    return marks;
  }

  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(On, MarksTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(MarksTest, FactsBumpTheMarksOfTheirKind) {
  const JobMarks born = Written({SampleJob("a")});
  EXPECT_EQ(born.id, "a");
  EXPECT_GT(born.revision, 0);
  EXPECT_EQ(born.curve, 0);
  for (const Fact& fact : SampleFacts("a")) {
    if (std::holds_alternative<JobRecord>(fact)) continue;
    const JobMarks before = Listed().at(0);
    const JobMarks after = Written({fact});
    EXPECT_EQ(Listed().at(0), after);
    const bool is_row =
        std::holds_alternative<RankRecord>(fact) || std::holds_alternative<Measurements>(fact);
    const bool is_unmarked = std::holds_alternative<IterationSummary>(fact) ||
                             std::holds_alternative<HistoryRow>(fact) ||
                             std::holds_alternative<WorkWanted>(fact);
    EXPECT_EQ(after.rows, before.rows + (is_row ? 1 : 0)) << fact.index();
    EXPECT_EQ(after.revision, before.revision + (is_row || is_unmarked ? 0 : 1)) << fact.index();
    if (std::holds_alternative<CurveRecord>(fact)) {
      EXPECT_EQ(after.curve, after.revision);
    } else {
      EXPECT_EQ(after.curve, before.curve);
    }
  }
  EXPECT_EQ(JobOrThrow(*store_, "a").marks, Listed().at(0));
}

TEST_P(MarksTest, OfARequestEachGoesOnOnce) {
  const JobMarks born = Written({SampleJob("a")});
  const JobMarks after = Written({TargetChange{"a", "fastest"}, DetectionChange{"a", "{}"},
                                  SampleRank("a", 0), SampleRank("a", 1)});
  EXPECT_EQ(after.revision, born.revision + 1);
  EXPECT_EQ(after.rows, born.rows + 1);
}

TEST_P(MarksTest, AnUnexpectedRevisionIsAConflictAndWritesNothing) {
  const JobMarks born = Written({SampleJob("a")});
  const JobMarks next = Written({TargetChange{"a", "1.1x"}}, born.revision);
  EXPECT_EQ(next.revision, born.revision + 1);
  const Error late = Refused({TargetChange{"a", "two"}, SampleRank("a", 0)}, born.revision);
  EXPECT_EQ(late.code, ErrorCode::kConflict);
  EXPECT_THAT(late.message, Mentions("meanwhile,"));
  const StoredJob job = JobOrThrow(*store_, "a");
  EXPECT_EQ(job.job.target, "1.1x");
  EXPECT_TRUE(job.ranks.empty());
  EXPECT_EQ(job.marks, next);
  // A race that was lost is no failure of the store.
  EXPECT_EQ(store_->counters().failures, 0);
}

TEST_P(MarksTest, WhatTheTablesRefuseIsAConflict) {
  Written({SampleJob("a"), SampleRank("a", 0)});
  EXPECT_EQ(Refused({SampleRank("nobody", 0)}).code, ErrorCode::kConflict);
  RankRecord same_place = SampleRank("a", 9);
  same_place.dp_rank = 0;
  same_place.pp_rank = 0;
  EXPECT_EQ(Refused({same_place}).code, ErrorCode::kConflict);
  JobRecord same_key = SampleJob("b");
  same_key.client_key = SampleJob("a").client_key;
  EXPECT_EQ(Refused({same_key}).code, ErrorCode::kConflict);
  EXPECT_EQ(store_->FindKey(same_key.client_key).value(), "a");
  EXPECT_EQ(store_->FindKey("nobody's").value(), std::nullopt);
}

TEST_P(MarksTest, ARequestIsAboutOneJob) {
  Written({SampleJob("a")});
  Written({SampleJob("b")});
  EXPECT_EQ(Refused({TargetChange{"a", "x"}, TargetChange{"b", "x"}}).code,
            ErrorCode::kInvalidInput);
  EXPECT_EQ(Refused({}).code, ErrorCode::kInvalidInput);
}

TEST_P(MarksTest, OfAJobThatIsGoneTheRevisionIsZero) {
  const JobMarks born = Written({SampleJob("a")});
  EXPECT_EQ(Refused({JobGone{"a"}}, born.revision + 7).code, ErrorCode::kConflict);
  EXPECT_EQ(Written({JobGone{"a"}}, born.revision), JobMarks{.id = "a"});
  EXPECT_EQ(Written({JobGone{"a"}}), JobMarks{.id = "a"});
  EXPECT_EQ(Refused({TargetChange{"a", "x"}}, born.revision).code, ErrorCode::kConflict);
  EXPECT_TRUE(Listed().empty());
  EXPECT_EQ(store_->LoadJob("a").value(), std::nullopt);
}

TEST_P(MarksTest, OnlyThePartsThatWereAskedForAreRead) {
  Written(SampleFacts("a"));
  const StoredJob none = JobOrThrow(*store_, "a", Parts::kNone);
  EXPECT_EQ(none.job.id, "a");
  EXPECT_GT(none.marks.revision, 0);
  EXPECT_EQ(none.job.client_key, "");
  EXPECT_FALSE(none.curve || none.version || !none.ranks.empty() || !none.measurements.empty() ||
               !none.stragglers.empty() || !none.iterations_here.empty());
  const StoredJob some = JobOrThrow(*store_, "a", Parts::kRanks | Parts::kCurve);
  EXPECT_EQ(some.ranks.size(), 2);
  EXPECT_TRUE(some.curve);
  EXPECT_FALSE(some.version || !some.measurements.empty() || !some.iterations_here.empty());
}

TEST_P(MarksTest, IterationsAreSummedOverServers) {
  const IterationSummary mine = {.job = "a",
                                 .plan_version = 2,
                                 .reports = 3,
                                 .total_seconds = 9,
                                 .least_seconds = 2,
                                 .most_seconds = 4,
                                 .square_seconds2 = 29,
                                 .energy_reports = 1,
                                 .total_joules = 5,
                                 .square_joules2 = 25};
  Written({SampleJob("a")});
  Written({mine});
  Written({mine});  // Replaces what this server wrote before.
  EXPECT_EQ(JobOrThrow(*store_, "a").iterations_here.at(0).reports, 3);
  EXPECT_TRUE(JobOrThrow(*store_, "a").iterations_elsewhere.empty());
  store_.reset();
  store_ = Open();
  IterationSummary more = mine;
  more.reports = 2;
  more.least_seconds = 1;
  Written({more});
  const StoredJob job = JobOrThrow(*store_, "a");
  ASSERT_EQ(job.iterations_elsewhere.size(), 1);
  EXPECT_EQ(job.iterations_elsewhere[0].reports, 3);
  ASSERT_EQ(job.iterations_here.size(), 1);
  EXPECT_EQ(job.iterations_here[0].reports, 2);
  store_.reset();
  store_ = Open();
  const std::vector<IterationSummary> others = JobOrThrow(*store_, "a").iterations_elsewhere;
  ASSERT_EQ(others.size(), 1);
  EXPECT_EQ(others[0].reports, 5);
  EXPECT_EQ(others[0].least_seconds, 1);
  EXPECT_EQ(others[0].most_seconds, 4);
  EXPECT_EQ(others[0].square_seconds2, 58);
  EXPECT_EQ(others[0].energy_reports, 2);
}

TEST_P(MarksTest, ARankKeepsItsPosition) {
  Written({SampleJob("a")});
  RankRecord rank{.job = "a", .rank = 3, .dp_rank = 0, .pp_rank = 1};
  Written({rank});
  rank.node = "n9";
  Written({rank});
  rank.pp_rank = 0;
  EXPECT_EQ(Refused({rank}).code, ErrorCode::kConflict);
  const auto stored = store_->LoadJob("a", Parts::kRanks).value();
  ASSERT_EQ(stored->ranks.size(), 1);
  EXPECT_EQ(stored->ranks[0].pp_rank, 1);
  EXPECT_EQ(stored->ranks[0].node, "n9");
}

TEST_P(MarksTest, TheProfileIsReadOnlyWhereItIsAskedFor) {
  JobRecord job = SampleJob("a");
  job.profile_csv = "text";
  Written({job});
  EXPECT_EQ(store_->LoadJob("a", Parts::kPhase).value()->job.profile_csv, "");
  const Parts both = Parts::kPhase | Parts::kProfile;
  EXPECT_EQ(store_->LoadJob("a", both).value()->job.profile_csv, "text");
}

TEST_P(MarksTest, TheTimeIsToldInSecondsOfTheDay) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(store_->NowSeconds().value(), now, 60);
}

}  // namespace
}  // namespace perseus::store
