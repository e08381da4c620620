// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/follower_testing.h"
#include "client/rank_plan.h"
#include "client/shared_state.h"

// Which clocks a follower calls for and when, and what it learns and reports.

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

// Plans for single iterations: each is followed in its own, and late ones are counted.

namespace perseus::client {
namespace {

class FollowerStepPlanTest : public FollowerTest {};

TEST_F(FollowerStepPlanTest, TakesAStepsOwnPlanInItsIterationAndCountsLateOnes) {
  const auto plan_of = [](std::int64_t iteration, int mhz) {
    auto plan = std::make_shared<RankPlan>();
    plan->version = -1;
    plan->iteration = iteration;
    PlanRow row;
    row.id = {ComputationType::kForward, 0, 0};
    row.mhz = mhz;
    row.duration_seconds = 0.02;
    plan->rows.push_back(row);
    return plan;
  };
  Follower follower{FollowerSettings{}};
  const auto run = [&](std::int64_t iteration) {
    const auto at = [&](EventKind kind, std::int64_t ms) {
      Event event;
      event.kind = kind;
      event.type = ComputationType::kForward;
      event.value = iteration;
      follower.Handle(event, (100 * iteration + ms) * 1'000'000);
    };
    at(EventKind::kStepBegin, 0);
    const bool follows = follower.Follows();
    at(EventKind::kBegin, 1);
    at(EventKind::kEnd, 21);
    at(EventKind::kStepEnd, 30);
    return follows;
  };
  follower.OfferStep(plan_of(2, 1200));
  EXPECT_FALSE(run(1));  // Not yet.
  EXPECT_TRUE(run(2));
  EXPECT_TRUE(run(3));  // The last one stays.
  follower.OfferStep(plan_of(3, 1100));
  EXPECT_TRUE(run(4));
  EXPECT_EQ(follower.counters().step_plans, 1U);
  EXPECT_EQ(follower.counters().step_plans_late, 1U);
  EXPECT_EQ(follower.plan_version(), -1);
  for (int k = 0; k < 6; ++k) follower.OfferStep(plan_of(100 + k, 1000));
  EXPECT_EQ(follower.counters().step_plans_late, 3U);
}

TEST_F(FollowerStepPlanTest, OfTooManyStepPlansTheOneFurthestAheadGoes) {
  for (int k = 1; k <= 6; ++k) {
    auto plan = std::make_shared<RankPlan>(*Plan(-1, {1000, 1000}));
    plan->iteration = k;
    follower_.OfferStep(plan);
  }
  EXPECT_EQ(follower_.counters().step_plans_late, 2U);
  for (int k = 1; k <= 5; ++k) {
    Say(EventKind::kStepBegin, {}, k);
    Say(EventKind::kStepEnd);
  }
  EXPECT_EQ(follower_.counters().step_plans, 4U);  // Of 1 to 4.
  // One that came too late goes before one that is still of use.
  for (const int k : {2, 6, 7, 8, 9}) {
    auto plan = std::make_shared<RankPlan>(*Plan(-1, {1000, 1000}));
    plan->iteration = k;
    follower_.OfferStep(plan);
  }
  for (int k = 6; k <= 9; ++k) {
    Say(EventKind::kStepBegin, {}, k);
    Say(EventKind::kStepEnd);
  }
  EXPECT_EQ(follower_.counters().step_plans, 8U);
}

TEST_F(FollowerStepPlanTest, TheFirstClockAheadIsThatOfTheNextStepsOwnPlan) {
  follower_.Offer(Plan(1, {1000, 1000}));
  Say(EventKind::kStepBegin, {}, 1);
  for (const int mhz : {1100, 1300}) {  // The newest counts.
    auto own = std::make_shared<RankPlan>(*Plan(-1, {mhz, 1000}));
    own->iteration = 2;
    follower_.OfferStep(own);
  }
  const auto plan = Plan(1, {1000, 1000});
  for (const PlanRow& row : plan->rows) Compute(row.id);
  Pass(now_ + 20 * kMs);
  Say(EventKind::kStepEnd);
  ASSERT_FALSE(calls_.empty());
  EXPECT_EQ(calls_.back().second, 1300);
}

// The server holds them against a profile of one length.
TEST_F(FollowerStepPlanTest, TellsNoTimesOfComputationsThatAreNotAsLongAsInTheProfile) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  for (int i = 0; i < 3; ++i) Iterate(*plan, i);
  EXPECT_FALSE(follower_.TakeKinds().empty());
  auto own = std::make_shared<RankPlan>(*Plan(-1, {1000, 1000, 1000, 1000, 1000, 1000}));
  own->iteration = 3;
  follower_.OfferStep(own);
  for (int i = 3; i < 6; ++i) Iterate(*plan, i);  // The last one stays.
  EXPECT_EQ(follower_.counters().step_plans, 1U);
  EXPECT_TRUE(follower_.TakeKinds().empty());
}

// Each step has a plan of its own when the device's times of an earlier one come.
TEST_F(FollowerStepPlanTest, DeviceTimesOfEarlierStepsCorrectThisOnes) {
  const auto own = [](int iteration, double times) {
    auto plan = std::make_shared<RankPlan>(*Plan(-1, {1000, 1000, 1400, 1400, 1400, 1400}));
    plan->iteration = iteration;
    for (PlanRow& row : plan->rows) {
      row.start_seconds *= times;
      row.duration_seconds *= times;
    }
    return plan;
  };
  // The device needs half as long again as planned, and the steps are of two lengths.
  std::int64_t begin = 0;
  for (int i = 0; i < 40; ++i) {
    const double times = i % 2 == 0 ? 1 : 0.5;
    const auto plan = own(i, times);
    follower_.OfferStep(plan);
    row_ns_ = static_cast<std::int64_t>(60 * kMs * times);
    calls_.clear();
    begin = now_;
    Say(EventKind::kStepBegin, {}, i);
    if (i > 1) {
      const std::int64_t before = i % 2 == 0 ? 30 * kMs : 60 * kMs;
      StepTimes device{.iteration = i - 1, .computations = {}};
      for (int row = 0; row < 6; ++row) {
        device.computations.push_back({row * before, (row + 1) * before});
      }
      follower_.HandleTimes(device);
    }
    for (const PlanRow& row : plan->rows) Compute(row.id);
    Say(EventKind::kStepEnd);
  }
  ASSERT_EQ(follower_.counters().step_plans, 40U);
  // The last: the third row begins after twice 30 ms, its clock takes 15 ms.
  ASSERT_FALSE(calls_.empty());
  const auto up = std::find_if(calls_.begin(), calls_.end(),
                               [](const auto& call) { return call.second == 1400; });
  ASSERT_NE(up, calls_.end());
  EXPECT_NEAR(static_cast<double>(up->first - begin), (60.0 - 15) * kMs, 0.5 * kMs);
}

}  // namespace
}  // namespace perseus::client

// What a follower does where training or the device is not as its plan says.

namespace perseus::client {
namespace {

class FollowerTroubleTest : public FollowerTest {};

// One call that took very long must not end all calls.
TEST_F(FollowerTroubleTest, ALatencyLongerThanTheIterationIsTriedAgain) {
  latency_ = LatencyRecord();
  latency_.AddCall(1000, 500 * kMs);
  const auto plan = Plan(1, {1000, 1000, 1400, 1400, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);
  calls_.clear();
  Iterate(*plan);
  const auto called = [&](int mhz) {
    return std::any_of(calls_.begin(), calls_.end(),
                       [&](const auto& call) { return call.second == mhz; });
  };
  EXPECT_TRUE(called(1000));
  EXPECT_TRUE(called(1400));
}

// Half of the rows need a clock that never comes.
TEST_F(FollowerTroubleTest, GoesCoarserWhereClocksNeverCome) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  follower_.Called(1000, now_, now_);
  for (int i = 0; i < 20 && follower_.level() == Level::kComputation; ++i) {
    Say(EventKind::kStepBegin);
    for (const PlanRow& row : plan->rows) {
      Say(EventKind::kBegin, row.id);
      now_ += row.mhz == 1400 ? 50 * kMs : 40 * kMs;
      Say(EventKind::kEnd, row.id);
    }
    Say(EventKind::kStepEnd);
  }
  EXPECT_NE(follower_.level(), Level::kComputation);
}

TEST_F(FollowerTroubleTest, LetsGoWhereTheOrderDiffers) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Say(EventKind::kStepBegin);
  Compute(plan->rows[0].id);
  Compute({ComputationType::kBackward, 0, 0});  // F1 is planned.
  ASSERT_FALSE(calls_.empty());
  EXPECT_EQ(calls_.back().second, 0);
  const auto complaint = follower_.TakeComplaint();
  ASSERT_TRUE(complaint);
  EXPECT_NE(complaint->find("backward of stage 0, microbatch 0"), std::string::npos) << *complaint;
  EXPECT_NE(complaint->find("forward of stage 0, microbatch 1"), std::string::npos) << *complaint;
  Say(EventKind::kStepEnd);
  EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, -1);
  // The next one is as planned: it follows again.
  Iterate(*plan);
  EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, 1);
  EXPECT_FALSE(follower_.TakeComplaint());
}

// Its trainer was still told that nobody listens. Later silence is a mistake.
TEST_F(FollowerTroubleTest, TheIterationInWhichThePlanComesMayBeSilent) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(RankPlan());
  EXPECT_FALSE(follower_.TakeComplaint());
  EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, -1);
  Iterate(*plan);
  EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, 1);
  Iterate(RankPlan());
  EXPECT_TRUE(follower_.TakeComplaint());
}

// However many short iterations end before it is told that there is a plan; and it may tell all the
// same.
TEST_F(FollowerTroubleTest, IterationsThatNobodyListenedToMayBeSilent) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  for (const int unheard : {0, 1, 2, 7}) {
    follower_ = Follower(FollowerSettings{});
    follower_.Offer(plan);
    for (int i = 0; i < unheard; ++i) {
      Say(EventKind::kStepBegin, {.stage = kUnheard}, i);
      Say(EventKind::kStepEnd);
      EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, -1);
    }
    Say(EventKind::kStepBegin, {.stage = kUnheard}, unheard);
    for (const PlanRow& row : plan->rows) Compute(row.id);
    Say(EventKind::kStepEnd);
    EXPECT_EQ(follower_.TakeIterations().at(0).plan_version, 1);
    EXPECT_EQ(follower_.counters().order_mismatches, 0U);
    Iterate(RankPlan());
    EXPECT_TRUE(follower_.TakeComplaint());
  }
}

TEST_F(FollowerTroubleTest, GivesUpAfterThreeWrongIterationsUntilAnotherPlan) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  for (int i = 0; i < 5; ++i) {
    Say(EventKind::kStepBegin);
    Compute(plan->rows[0].id);
    Say(EventKind::kStepEnd);  // Five are missing.
  }
  EXPECT_TRUE(follower_.GaveUp());
  EXPECT_EQ(follower_.counters().order_mismatches, 3U);
  EXPECT_EQ(follower_.clock_mhz(), 0);
  const auto next = Plan(2, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(next);
  Iterate(*next);
  EXPECT_FALSE(follower_.GaveUp());
  EXPECT_NE(follower_.clock_mhz(), 0);
}

TEST_F(FollowerTroubleTest, GivesTheClockBackWhenNothingHappens) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  Iterate(*plan);
  EXPECT_EQ(follower_.clock_mhz(), 1000);
  Pass(now_ + 10'000 * kMs);  // An evaluation.
  EXPECT_EQ(follower_.clock_mhz(), 0);
  Iterate(*plan);
  EXPECT_EQ(follower_.clock_mhz(), 1000);
}

TEST_F(FollowerTroubleTest, NoPlanMakesPatienceEndless) {
  for (const double seconds : {1e6, 1e300}) {
    auto plan = std::make_shared<RankPlan>(*Plan(1, {1000, 1000, 1000, 1000, 1000, 1000}));
    plan->iteration_time_seconds = seconds;
    follower_.Offer(plan);
    Iterate(*plan);
    EXPECT_EQ(follower_.clock_mhz(), 1000);
    Pass(now_ + 61'000 * kMs);
    EXPECT_EQ(follower_.clock_mhz(), 0) << seconds;
  }
}

TEST_F(FollowerTroubleTest, AClockThatWasLostIsSetAgain) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  Iterate(*plan);
  follower_.ClockLost();
  calls_.clear();
  Iterate(*plan);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].second, 1000);
}

TEST_F(FollowerTroubleTest, AFailedCallIsMadeAgainAndGivenBackInTheEnd) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  Say(EventKind::kStepBegin);
  ASSERT_EQ(follower_.Decide(now_, latency_).call_mhz, 1000);
  follower_.CallFailed(now_, now_ + kMs);
  EXPECT_FALSE(follower_.Decide(now_ + 2 * kMs, latency_).call_mhz);  // Minimum interval.
  EXPECT_EQ(follower_.Decide(now_ + 10 * kMs, latency_).call_mhz, 1000);
  follower_.Pause();
  EXPECT_EQ(follower_.Decide(now_ + 10 * kMs, latency_).call_mhz, 0);
}

// Computations during which a call is under way take 10 ms longer.
TEST_F(FollowerTroubleTest, GoesCoarserWhereCallsCostTime) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  for (int i = 0; i < 12 && follower_.level() == Level::kComputation; ++i) {
    Say(EventKind::kStepBegin);
    for (const PlanRow& row : plan->rows) {
      Say(EventKind::kBegin, row.id);
      const std::size_t before = calls_.size();
      Pass(now_ + row_ns_);
      if (calls_.size() > before) now_ += 10 * kMs;
      Say(EventKind::kEnd, row.id);
    }
    Say(EventKind::kStepEnd);
  }
  EXPECT_EQ(follower_.level(), Level::kPhase);
  const auto complaint = follower_.TakeComplaint();
  ASSERT_TRUE(complaint);
  // What it does, for how long, and what the user can do.
  for (const char* const words : {"more than 1 %", "one clock for each phase", "1000 iterations",
                                  "granularity", "max_overhead"}) {
    EXPECT_NE(complaint->find(words), std::string::npos) << words << ": " << *complaint;
  }
}

// However dear calls are, in the end there are none; not with the next plan either.
TEST_F(FollowerTroubleTest, StopsCallingWhereAllLevelsCostTime) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1200});
  follower_.Offer(plan);
  for (int i = 0; i < 200 && follower_.level() != Level::kOff; ++i) {
    Say(EventKind::kStepBegin);
    for (const PlanRow& row : plan->rows) {
      Say(EventKind::kBegin, row.id);
      // At the coarsest level somebody else's calls are to blame; the follower cannot know.
      if (row.id.microbatch == 1 && row.mhz == 1400) follower_.Called(1400, now_, now_ + kMs);
      Pass(now_ + row_ns_ + (row.id.microbatch == 1 && row.mhz == 1400 ? 10 * kMs : 0));
      Say(EventKind::kEnd, row.id);
    }
    Say(EventKind::kStepEnd);
  }
  EXPECT_EQ(follower_.level(), Level::kOff);
  follower_.Offer(Plan(2, {1000, 1000, 1400, 1000, 1400, 1200}));
  Iterate(*plan);
  calls_.clear();
  Iterate(*plan);
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(follower_.clock_mhz(), 0);
}

TEST_F(FollowerTroubleTest, StaysFineWhereCallsCostNothing) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  row_ns_ = 55 * kMs;  // A slower GPU than profiled is not the calls' fault.
  for (int i = 0; i < 20; ++i) Iterate(*plan);
  EXPECT_EQ(follower_.level(), Level::kComputation);
}

TEST_F(FollowerTroubleTest, AnAbandonedIterationLeavesNoTrace) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1000, 1400, 1400});
  follower_.Offer(plan);
  Iterate(*plan);
  follower_.TakeIterations();
  Say(EventKind::kStepBegin, {}, 2);
  row_ns_ = 400 * kMs;  // An exception's traceback, say.
  Compute(plan->rows[0].id);
  Compute(plan->rows[1].id);
  Say(EventKind::kStepAbandon);
  EXPECT_TRUE(follower_.TakeIterations().empty());
  EXPECT_EQ(follower_.counters().iterations, 1U);
  EXPECT_EQ(follower_.counters().order_mismatches, 0U);
  EXPECT_EQ(follower_.shortest_row_ns(), 40 * kMs);
  EXPECT_FALSE(follower_.in_iteration());
  row_ns_ = 40 * kMs;
  calls_.clear();
  const std::int64_t begin = now_;
  Iterate(*plan, 3);
  ASSERT_EQ(follower_.TakeIterations().size(), 1U);
  ASSERT_GE(calls_.size(), 2U);  // The first goes back to the clock of the first row.
  EXPECT_NEAR(static_cast<double>(calls_[1].first - begin), 65 * kMs, 2);  // As before.
  EXPECT_EQ(calls_[1].second, 1400);
}

}  // namespace
}  // namespace perseus::client

// What a client without a plan counts.

namespace perseus::client {
namespace {

using enum ComputationType;

void Iterate(Tally* tally, const std::vector<ComputationId>& computations, std::uint64_t lost = 0,
             EventKind end = EventKind::kStepEnd) {
  tally->Handle({.kind = EventKind::kStepBegin}, 0);
  for (const ComputationId& id : computations) {
    tally->Handle({.kind = EventKind::kBegin, .type = id.type, .stage = id.stage}, 0);
    tally->Handle({.kind = EventKind::kEnd, .type = id.type, .stage = id.stage}, 0);
  }
  tally->Handle({.kind = end}, lost);
}

const std::vector<ComputationId> kTwoAndOne = {
    {kForward, 3, 0}, {kForward, 3, 1}, {kBackward, 3, 0}};

TEST(Tally, KnowsWhatTwoIterationsInARowRun) {
  Tally tally;
  Iterate(&tally, kTwoAndOne);
  EXPECT_FALSE(tally.counts());
  Iterate(&tally, kTwoAndOne);
  EXPECT_EQ(tally.counts(), (ComputationCounts{{{kForward, 3}, 2}, {{kBackward, 3}, 1}}));
  // An odd one says nothing new; two do.
  Iterate(&tally, {});
  EXPECT_EQ(tally.counts()->size(), 2U);
  Iterate(&tally, {});
  EXPECT_EQ(tally.counts(), ComputationCounts{});
}

TEST(Tally, LeavesOutWhatIsNotWhole) {
  Tally tally;
  for (int i = 0; i < 3; ++i) {
    Iterate(&tally, kTwoAndOne, /*lost=*/1);
    Iterate(&tally, kTwoAndOne, 0, EventKind::kStepAbandon);
    tally.Handle({.kind = EventKind::kStepBegin, .stage = kUnheard}, 0);
    tally.Handle({.kind = EventKind::kStepEnd}, 0);
    tally.Handle({.kind = EventKind::kStepBegin}, 0);
    tally.Skip();
    tally.Handle({.kind = EventKind::kStepEnd}, 0);
  }
  EXPECT_FALSE(tally.counts());
}

// Iterations of ten computations, 10 ms each as planned, three of which have a
// call under way; true where the guard says that calls cost too much.
bool Trips(OverheadGuard* guard, int iterations,
           const std::function<double(int iteration, bool during_call)>& milliseconds) {
  for (int i = 0; i < iterations; ++i) {
    double whole = 0;
    for (int k = 0; k < 10; ++k) {
      const bool during_call = k % 3 == 2;
      const double lasts = milliseconds(i, during_call) * 1e-3;
      guard->AddComputation(k % 2 == 0 ? ComputationType::kForward : ComputationType::kBackward,
                            0.010, lasts, during_call);
      whole += lasts;
    }
    if (guard->EndIteration(whole)) return true;
  }
  return false;
}

TEST(OverheadGuard, TripsWhereCallsCostMoreThanTheShare) {
  OverheadGuard guard(0.01);
  EXPECT_TRUE(Trips(&guard, 10, [](int, bool during) { return during ? 10.5 : 10.0; }));
}

TEST(OverheadGuard, DoesNotTripBelowTheShare) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 100, [](int, bool during) { return during ? 10.2 : 10.0; }));
  EXPECT_NEAR(guard.share(), 0.006, 1e-3);
}

TEST(OverheadGuard, ASlowerGpuIsNotTheCallsFault) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 100, [](int, bool) { return 13.0; }));
}

TEST(OverheadGuard, HeatThatComesAndGoesIsNotTheCallsFault) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 200, [](int i, bool) { return i / 7 % 2 == 0 ? 10.0 : 12.0; }));
}

TEST(OverheadGuard, HeatIsSeenInTheOtherTypesToo) {
  // Backwards always have a call under way, but for the first iteration.
  OverheadGuard guard(0.01);
  for (int i = 0; i < 50; ++i) {
    const double lasts = i < 10 ? 0.010 : 0.012;
    for (int k = 0; k < 4; ++k) {
      guard.AddComputation(ComputationType::kForward, 0.010, lasts, false);
      guard.AddComputation(ComputationType::kBackward, 0.010, lasts, i > 0);
    }
    EXPECT_FALSE(guard.EndIteration(8 * lasts)) << i;
  }
}

TEST(OverheadGuard, ATypeThatIsAlwaysDisturbedIsHeldAgainstTheOthers) {
  OverheadGuard guard(0.01);
  bool tripped = false;
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 4; ++k) {
      guard.AddComputation(ComputationType::kForward, 0.010, 0.010, false);
      guard.AddComputation(ComputationType::kBackward, 0.010, 0.012, true);
    }
    tripped = tripped || guard.EndIteration(0.088);
  }
  EXPECT_TRUE(tripped);
}

TEST(OverheadGuard, OneBadIterationDoesNotCount) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(
      Trips(&guard, 100, [](int i, bool during) { return during && i % 5 == 0 ? 30.0 : 10.0; }));
}

}  // namespace
}  // namespace perseus::client
