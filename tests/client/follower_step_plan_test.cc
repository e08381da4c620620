// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans for single iterations: each is followed in its own, and late ones are counted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "client/follower.h"
#include "client/follower_testing.h"
#include "client/rank_plan.h"

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
