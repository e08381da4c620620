// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Which clocks a follower calls for and when, and what it learns and reports.

#include "client/follower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "client/follower_testing.h"
#include "client/rank_plan.h"

namespace perseus::client {
namespace {

TEST_F(FollowerTest, SetsTheClockOfEachComputationAheadOfTime) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);  // Learns.
  calls_.clear();
  const std::int64_t begin = now_;
  Iterate(*plan);
  // B0 begins 80 ms after the first, F2 at 120, B1 at 160; the wrap to F0 ahead of the last one's
  // end. Higher clocks by the high latency, lower ones by the least and 5 % of the row.
  const std::vector<std::pair<std::int64_t, int>> expected = {{begin + 65 * kMs, 1400},
                                                              {begin + 105 * kMs, 1000},
                                                              {begin + 145 * kMs, 1400},
                                                              {begin + 225 * kMs, 1000}};
  ASSERT_EQ(calls_.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(calls_[i].first - expected[i].first), 0, 2) << i;
    EXPECT_EQ(calls_[i].second, expected[i].second) << i;
  }
}

TEST_F(FollowerTest, CallsAtTheBeginWhereAskedTo) {
  FollowerSettings settings;
  settings.ahead = false;
  follower_ = Follower(settings);
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);
  calls_.clear();
  const std::int64_t begin = now_;
  Iterate(*plan);
  EXPECT_EQ(calls_, (std::vector<std::pair<std::int64_t, int>>{{begin, 1000},
                                                               {begin + 80 * kMs, 1400},
                                                               {begin + 120 * kMs, 1000},
                                                               {begin + 160 * kMs, 1400}}));
}

TEST_F(FollowerTest, LowersLateWhereLatencyVaries) {
  latency_ = Latency(5 * kMs, 25 * kMs);
  const auto plan = Plan(1, {1400, 1400, 1000, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);
  calls_.clear();
  const std::int64_t begin = now_;
  Iterate(*plan);
  ASSERT_EQ(calls_.size(), 2U);
  // Down at 80 ms: not before 80 - 5 (least) - 2 (5 % of 40). Up at 160: 25 before.
  EXPECT_NEAR(static_cast<double>(calls_[0].first - begin), 73.0 * kMs, 2);
  EXPECT_NEAR(static_cast<double>(calls_[1].first - begin), 135.0 * kMs, 2);
}

TEST_F(FollowerTest, LearnsDurationsFromTheLastIterations) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1400, 1400, 1400});
  follower_.Offer(plan);
  row_ns_ = 60 * kMs;  // Longer than planned.
  for (int i = 0; i < 3; ++i) Iterate(*plan);
  calls_.clear();
  const std::int64_t begin = now_;
  Iterate(*plan);
  ASSERT_FALSE(calls_.empty());
  EXPECT_NEAR(static_cast<double>(calls_[0].first - begin), (120.0 - 15) * kMs, 2);
}

TEST_F(FollowerTest, TakesAPlanAtTheNextIterationOnly) {
  const auto first = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  const auto second = Plan(2, {1200, 1200, 1200, 1200, 1200, 1200});
  follower_.Offer(first);
  Say(EventKind::kStepBegin);
  Compute(first->rows[0].id);
  follower_.Offer(second);
  for (std::size_t i = 1; i + 1 < first->rows.size(); ++i) Compute(first->rows[i].id);
  EXPECT_EQ(follower_.plan_version(), 1);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].second, 1000);
  Compute(first->rows.back().id);
  Say(EventKind::kStepEnd);
  Iterate(*second);
  EXPECT_EQ(follower_.plan_version(), 2);
  ASSERT_EQ(calls_.size(), 2U);
  EXPECT_EQ(calls_[1].second, 1200);
}

TEST_F(FollowerTest, KeepsTheMinimumIntervalAndCoalesces) {
  const auto plan = Plan(1, {1000, 1100, 1200, 1300, 1400, 1000});
  latency_ = Latency(kMs, kMs);
  row_ns_ = 3 * kMs;  // Three changes in ten milliseconds.
  follower_.Offer(plan);
  for (int i = 0; i < 4; ++i) Iterate(*plan);
  for (std::size_t i = 1; i < calls_.size(); ++i) {
    EXPECT_GE(calls_[i].first - calls_[i - 1].first, 10 * kMs);
  }
  EXPECT_GT(follower_.counters().coalesced, 0U);
  EXPECT_GT(follower_.counters().missed, 0U);
}

TEST_F(FollowerTest, CountsLateAndMissedChanges) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1400, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);
  Say(EventKind::kStepBegin);
  Compute(plan->rows[0].id);
  Compute(plan->rows[1].id);
  // The call that was made for B0 took until 20 ms after its begin.
  const std::uint64_t late = follower_.counters().late;
  Say(EventKind::kBegin, plan->rows[2].id);
  follower_.Called(1000, now_ - kMs, now_);
  follower_.Called(1400, now_, now_ + 20 * kMs);
  now_ += row_ns_;
  Say(EventKind::kEnd, plan->rows[2].id);
  EXPECT_EQ(follower_.counters().late, late + 1);
}

TEST_F(FollowerTest, MatchesByOrderWhereMicrobatchesAreUnknown) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Say(EventKind::kStepBegin);
  for (const PlanRow& row : plan->rows) Compute({row.id.type, -1, -1});
  Say(EventKind::kStepEnd);
  EXPECT_EQ(follower_.counters().order_mismatches, 0U);
  EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, 1);
}

TEST_F(FollowerTest, WithoutAPlanNothingIsCalled) {
  const auto shape = Plan(1, {1, 1, 1, 1, 1, 1});
  Iterate(*shape);
  auto none = std::make_shared<RankPlan>();
  none->version = 7;
  follower_.Offer(none);
  Iterate(*shape);
  EXPECT_TRUE(calls_.empty());
  const std::vector<IterationRecord> records = follower_.TakeIterations();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_NEAR(records[1].seconds, 0.24, 1e-9);
  EXPECT_NEAR(records[1].busy_seconds, 0.24, 1e-9);
}

TEST_F(FollowerTest, IterationsForComparisonRunAtTheDriversClocks) {
  const auto plan = std::make_shared<RankPlan>(*Plan(1, {1000, 1000, 1200, 1000, 1400, 1400}));
  plan->comparison = ComparisonBlocks{.every = 8, .iterations = 3};
  follower_.Offer(plan);
  for (int i = 0; i < 24; ++i) {
    row_ns_ = plan->comparison->AtMaximum(i) ? 30 * kMs : 40 * kMs;
    calls_.clear();
    Iterate(*plan, i);
    if (!plan->comparison->AtMaximum(i)) {
      EXPECT_GE(calls_.size(), 3U) << i;
      continue;
    }
    // The clock is given back once, and none is set within.
    EXPECT_LE(calls_.size(), 1U) << i;
    for (const auto& [at_ns, mhz] : calls_) EXPECT_EQ(mhz, 0) << i;
  }
  const std::vector<IterationRecord> records = follower_.TakeIterations();
  ASSERT_EQ(records.size(), 24U);
  for (int i = 0; i < 24; ++i) {
    const IterationRecord& record = records[static_cast<std::size_t>(i)];
    EXPECT_EQ(record.clocks == Clocks::kDrivers, plan->comparison->AtMaximum(i)) << i;
    EXPECT_EQ(record.plan_version, 1);
  }
  EXPECT_FALSE(follower_.GaveUp());
  EXPECT_EQ(follower_.counters().order_mismatches, 0U);
}

TEST_F(FollowerTest, BusyTimeIsOfEachTypeAndTheTrainersWordReplacesIt) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  Iterate(*plan);
  Say(EventKind::kStepBegin, {}, 1);
  for (const PlanRow& row : plan->rows) Compute(row.id);
  Say(EventKind::kBusy, {ComputationType::kBackward, -1, -1}, 500 * kMs);
  Say(EventKind::kStepEnd);
  Iterate(*plan, 2);
  const std::vector<IterationRecord> records = follower_.TakeIterations();
  ASSERT_EQ(records.size(), 3U);
  for (const std::size_t i : {0, 1, 2}) {
    EXPECT_NEAR(records[i].busy_by_type[0], 0.12, 1e-9);
    EXPECT_NEAR(records[i].busy_by_type[1], i == 1 ? 0.5 : 0.12, 1e-9);
    EXPECT_NEAR(records[i].busy_seconds, i == 1 ? 0.62 : 0.24, 1e-9);
    EXPECT_EQ(records[i].clocks, Clocks::kPlanned);
  }
}

TEST_F(FollowerTest, FusedComputationsAreOneRow) {
  auto plan = std::make_shared<RankPlan>();
  plan->version = 1;
  plan->rows = {Row(ComputationType::kForward, 0, 1000, 0, 0.04),
                Row(ComputationType::kForward, 1, 1200, 0.04, 0.04),
                Row(ComputationType::kBackward, 1, 1000, 0.08, 0.04)};
  plan->rows[1].fused = ComputationId{ComputationType::kBackward, 0, 0};
  follower_.Offer(plan);
  Say(EventKind::kStepBegin);
  Compute(plan->rows[0].id);
  Say(EventKind::kBegin, plan->rows[1].id);
  Say(EventKind::kBegin, *plan->rows[1].fused);
  Pass(now_ + row_ns_);
  Say(EventKind::kEnd, plan->rows[1].id);
  Say(EventKind::kEnd, *plan->rows[1].fused);
  Compute(plan->rows[2].id);
  Say(EventKind::kStepEnd);
  EXPECT_EQ(follower_.counters().order_mismatches, 0U);
}

StepTimes TimesOf(std::int64_t iteration, int count, std::int64_t each_ns, std::int64_t every_ns) {
  StepTimes times;
  times.iteration = iteration;
  for (int i = 0; i < count; ++i) {
    times.computations.push_back({i * every_ns, i * every_ns + each_ns});
  }
  return times;
}

TEST_F(FollowerTest, DeviceTimesReplaceTheHosts) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan, 0);
  ASSERT_EQ(follower_.TakeIterations().size(), 1U);  // Nobody gave device times yet.
  follower_.HandleTimes(TimesOf(0, 6, 30 * kMs, 50 * kMs));
  Iterate(*plan, 1);
  EXPECT_TRUE(follower_.TakeIterations().empty());  // Its times may still come.
  for (int i = 0; i < 30; ++i) {                    // Predictions follow them, not the host.
    Iterate(*plan, 2 + i);
    follower_.HandleTimes(TimesOf(1 + i, 6, 30 * kMs, 50 * kMs));
  }
  const auto records = follower_.TakeIterations();
  ASSERT_EQ(records.size(), 30U);
  EXPECT_EQ(records[0].iteration, 1);
  EXPECT_NEAR(records[0].busy_seconds, 6 * 0.030, 1e-9);
  EXPECT_NEAR(records[0].busy_by_type[0], 3 * 0.030, 1e-9);
  EXPECT_EQ(follower_.shortest_row_ns() / kMs, 30);
}

TEST_F(FollowerTest, DeviceTimesThatDoNotFitAreSaidAndNotUsed) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  follower_.HandleTimes(TimesOf(0, 6, 30 * kMs, 50 * kMs));
  Iterate(*plan, 1);
  follower_.HandleTimes(TimesOf(1, 5, 30 * kMs, 50 * kMs));
  EXPECT_TRUE(follower_.TakeComplaint());
  const auto records = follower_.TakeIterations();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_NEAR(records[0].busy_seconds, 6 * 0.040, 1e-9);
  for (int i = 2; i < 6; ++i) Iterate(*plan, i);  // They stop coming: nothing is kept for good.
  EXPECT_EQ(follower_.TakeIterations().size(), 1U);
}

TEST_F(FollowerTest, CountsWhatComputationsTakeAtTheirClocks) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  for (int i = 0; i < 5; ++i) Iterate(*plan, i);
  std::int64_t count = 0;
  for (const KindTimes& kind : follower_.TakeKinds()) {
    EXPECT_TRUE(kind.mhz == 1000 || kind.mhz == 1400);
    EXPECT_NEAR(kind.seconds / static_cast<double>(kind.count), 0.040, 1e-9);
    count += kind.count;
  }
  // Not those during which the clock changed: three of six rows here are called for ahead of time.
  EXPECT_GE(count, 5 * 2);
  EXPECT_LE(count, 5 * 6);
  EXPECT_TRUE(follower_.TakeKinds().empty());
}

// A row whose clock comes in time only when those before it took long is no sample of its kind.
TEST_F(FollowerTest, RowsThatAreCountedNowAndThenAreToldApart) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  latency_ = Latency(15 * kMs, 30 * kMs);
  std::mt19937 random(4);
  constexpr int kSettling = 20;
  constexpr int kIterations = 400;
  for (int i = 0; i < kSettling + kIterations; ++i) {
    if (i == kSettling) follower_.TakeKinds();
    Say(EventKind::kStepBegin, {}, i);
    for (const PlanRow& row : plan->rows) {
      row_ns_ = (20 + static_cast<std::int64_t>(random() % 41)) * kMs;
      Compute(row.id);
    }
    Say(EventKind::kStepEnd);
  }
  std::int64_t steady = 0;
  std::int64_t others = 0;
  for (const KindTimes& kind : follower_.TakeKinds()) {
    (kind.is_steady ? steady : others) += kind.count;
    if (!kind.is_steady) continue;
    // Of whole rows, so of nearly all iterations.
    const auto rows = std::round(static_cast<double>(kind.count) / kIterations);
    EXPECT_GE(static_cast<double>(kind.count), 0.93 * rows * kIterations) << kind.mhz;
  }
  EXPECT_GT(steady, kIterations / 2);
  EXPECT_GT(others, kIterations / 2);
}

// The same iterations on all ranks, so that the server can put them together.
TEST_F(FollowerTest, TellsWhenRowsRanInEveryTenthIteration) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  for (std::int64_t iteration = 18; iteration < 20; ++iteration) {
    Iterate(*plan, iteration);
    EXPECT_FALSE(follower_.TakeTimeline(iteration)) << iteration;
  }
  Iterate(*plan, 20);
  EXPECT_FALSE(follower_.TakeTimeline(10)) << "of another iteration";
  const auto timeline = follower_.TakeTimeline(20);
  ASSERT_TRUE(timeline);
  EXPECT_FALSE(follower_.TakeTimeline(20)) << "it was taken";
  ASSERT_EQ(timeline->rows.size(), 6U);
  for (int row = 0; row < 6; ++row) {
    const auto at = static_cast<std::size_t>(row);
    EXPECT_EQ(timeline->rows[at].begin_ns, 40 * row * kMs);
    EXPECT_EQ(timeline->rows[at].end_ns, 40 * (row + 1) * kMs);
  }
  EXPECT_EQ(timeline->changes, (std::vector<int>{0, 2, 3, 4}));
}

TEST_F(FollowerTest, TellsNoTimesOfIterationsThatAreNotLikeTheirPlan) {
  auto plan = std::make_shared<RankPlan>(*Plan(1, {1000, 1000, 1400, 1000, 1400, 1400}));
  follower_.Offer(plan);
  Iterate(*plan, 19);
  Say(EventKind::kStepBegin, {}, 20);
  for (std::size_t i = 0; i < 3; ++i) Compute(plan->rows[i].id);
  Say(EventKind::kStepEnd);
  EXPECT_FALSE(follower_.TakeTimeline(20)) << "it ended early";
}

TEST_F(FollowerTest, TellsDeviceTimesOfRowsWhereThereAreAny) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  StepTimes times;
  for (int row = 0; row < 6; ++row) {
    times.computations.push_back({.begin_ns = row * 41 * kMs, .end_ns = (row * 41 + 39) * kMs});
  }
  for (times.iteration = 19; times.iteration <= 20; ++times.iteration) {
    Iterate(*plan, times.iteration);
    follower_.HandleTimes(times);
  }
  const auto timeline = follower_.TakeTimeline(20);
  ASSERT_TRUE(timeline);
  ASSERT_EQ(timeline->rows.size(), 6U);
  EXPECT_EQ(timeline->rows[1].begin_ns, 41 * kMs);
  EXPECT_EQ(timeline->rows[5].end_ns, 244 * kMs);
  EXPECT_EQ(timeline->changes, (std::vector<int>{0, 2, 3, 4}));
}

}  // namespace
}  // namespace perseus::client
