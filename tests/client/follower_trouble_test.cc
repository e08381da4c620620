// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a follower does where training or the device is not as its plan says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "client/follower.h"
#include "client/follower_testing.h"
#include "client/rank_plan.h"

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
