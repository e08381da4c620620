// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/reading.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <variant>

#include "server/domain/decide.h"
#include "server/service_testing.h"
#include "server/simulation/simulated_store.h"

namespace perseus::server {
namespace {

constexpr int kThisServer = 1;
constexpr int kOtherServer = 2;

// The other server's rows before its own were not read, so the store that lost all of them looks as
// this server last read it.
TEST(ReadingTest, ARankThatThisServerWroteAndTheStoreLostIsForgotten) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  JobLife job = maker.LifeOf(rows);
  const SimulatedRows standby = rows;
  ASSERT_TRUE(rows.Commit(kOtherServer, {SmallRank(0)}, {}));
  ASSERT_TRUE(rows.Commit(kThisServer, {SmallRank(1)}, {}));
  ASSERT_EQ(NoteOwnRows(rows.job.marks, &job), OwnRows::kReadFirst);
  Apply(SmallRank(1), {}, &job);
  ASSERT_EQ(job.marks.rows, standby.job.marks.rows);

  Reading reading;
  reading.known = KnownOf(job);
  reading.parts = PartsToRead(standby.job.marks, reading.known);
  reading.stored = standby.job;
  EXPECT_TRUE(Absorb(reading, &job));
  EXPECT_TRUE(job.ranks.empty());
  EXPECT_TRUE(job.positions.empty());
  // Nothing is lost any more.
  EXPECT_EQ(PartsToRead(standby.job.marks, KnownOf(job)), store::Parts::kNone);
}

// They would be dropped: they are of a sweep that this server does not know yet.
TEST(ReadingTest, RowsAreNotTakenWithoutThePhaseThatTheyBelongTo) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  ASSERT_TRUE(rows.Commit(kOtherServer, {SmallRank(0)}, {}));
  JobLife job = maker.LifeOf(rows);
  ASSERT_TRUE(rows.Commit(kOtherServer, {SmallRank(1)}, {}));
  Reading reading;
  reading.known = KnownOf(job);
  reading.parts = PartsToRead(rows.job.marks, reading.known);
  ASSERT_FALSE(Has(reading.parts, store::Parts::kPhase));
  // Between the look at the marks and the reading.
  store::Measurements measured = Sweep(0, /*done=*/true);
  measured.sweep_round = 1;
  const store::StateChange sweep{.state = store::JobState::kProfiling, .sweep_round = 1};
  ASSERT_TRUE(rows.Commit(kOtherServer, {sweep}, {}));
  ASSERT_TRUE(rows.Commit(kOtherServer, {measured}, {}));
  reading.stored = rows.job;
  EXPECT_FALSE(Absorb(reading, &job));

  reading.known = KnownOf(job);
  reading.parts = PartsToRead(rows.job.marks, reading.known);
  EXPECT_TRUE(Absorb(reading, &job));
  EXPECT_EQ(job.measurements, 1U);
  EXPECT_EQ(job.ranks.size(), 2U);
}

// The rows show nothing of what was lost: only their history tells.
TEST(ReadingTest, AVersionIsAboveAllThatWereLostUnseen) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  rows.job.marks.revision = (std::int64_t{5} << store::kHistoryBits) + 7;
  const auto decision = Decide(maker.LifeOf(rows), {}, /*last_version=*/3, LookAtTime{}, {});
  ASSERT_TRUE(decision);
  ASSERT_EQ(decision->facts.size(), 1U);
  EXPECT_EQ(std::get<store::PlanVersion>(decision->facts.front()).version,
            (std::int64_t{5} << store::kHistoryBits) + 1);
}

// Nobody may ever write again, so that no later revision would say it.
TEST(ReadingTest, WhatTheStoreLostIsTakenBack) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  const SimulatedRows standby = rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {store::DetectionChange{.detection_json = "{}"}}, {}));
  JobLife job = maker.LifeOf(rows);
  ASSERT_EQ(job.phase.watch_json, "{}");
  Reading reading;
  reading.known = KnownOf(job);
  reading.parts = PartsToRead(standby.job.marks, reading.known);
  reading.stored = standby.job;
  EXPECT_TRUE(Absorb(reading, &job));
  EXPECT_EQ(job.phase.watch_json, "");
  EXPECT_EQ(job.marks.revision, standby.job.marks.revision);
}

// A server that was not told of the loss still has all ranks that it knew.
TEST(ReadingTest, RowsOfAnotherHistoryReplaceAllThatWereKnown) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  SimulatedRows standby = rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {SmallRank(1)}, {}));
  JobLife job = maker.LifeOf(rows);
  standby.instance = 1;
  ASSERT_TRUE(standby.Commit(kOtherServer, {SmallRank(2)}, {}));
  Reading reading;
  reading.known = KnownOf(job);
  reading.parts = PartsToRead(standby.job.marks, reading.known);
  reading.stored = standby.job;
  EXPECT_TRUE(Absorb(reading, &job));
  EXPECT_FALSE(job.ranks.contains(1));
  EXPECT_TRUE(job.ranks.contains(2));
}

// A sweep of the same number may have been settled in both histories.
TEST(ReadingTest, ACurveOfAnotherHistoryIsOfAnotherProfile) {
  PlanMaker maker;
  Known known;
  known.marks.revision = 7;
  known.settled_round = 1;
  known.built.job = maker.JobOf("");
  store::StoredJob stored;
  stored.job.settled_round = 1;
  stored.marks.revision = 8;
  EXPECT_FALSE(HasNewJob(stored, known));
  stored.marks.revision += std::int64_t{1} << store::kHistoryBits;
  EXPECT_TRUE(HasNewJob(stored, known));
}

// Else its ranks would follow the plan that is lost, and not measure what is lost with it.
TEST(ReadingTest, AJobWithoutPlansTakesBackAVersionThatTheStoreLost) {
  PlanMaker maker;
  SimulatedRows rows;
  ASSERT_TRUE(rows.Commit(kThisServer, {maker.record()}, {}));
  const JobLife job = maker.LifeOf(rows);
  const auto none = Decide(job, {}, /*last_version=*/0, LookAtTime{}, {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->facts.empty());

  const auto decision = Decide(job, {}, /*last_version=*/1, LookAtTime{}, {});
  ASSERT_TRUE(decision);
  ASSERT_EQ(decision->facts.size(), 1U);
  const auto* const version = std::get_if<store::PlanVersion>(&decision->facts.front());
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version->version, 2);
  EXPECT_EQ(version->plan, 0);
}

}  // namespace
}  // namespace perseus::server
