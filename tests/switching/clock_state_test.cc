// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/clock_state.h"

#include <gtest/gtest.h>

namespace perseus::emulate {
namespace {

constexpr double kLatency = 2;

TEST(ClockStateTest, KnobIsInEffectAfterTheLatency) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 10, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 0);
  clock.Advance(11.9, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 0);
  clock.Advance(12, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  EXPECT_FALSE(clock.calling());
  EXPECT_EQ(calls, 1);
}

TEST(ClockStateTest, NewestOfThoseThatWaitWins) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 0, kLatency, &calls);
  clock.Ask(2, 0.5, kLatency, &calls);
  clock.Ask(3, 1, kLatency, &calls);
  clock.Advance(2, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  EXPECT_EQ(clock.target, 3);
  EXPECT_EQ(clock.call_end_seconds, 4);
  clock.Advance(4, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 3);
  EXPECT_EQ(calls, 2);
}

TEST(ClockStateTest, NoSecondCallForWhatTheFirstBrings) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 0, kLatency, &calls);
  clock.Ask(0, 0.5, kLatency, &calls);
  clock.Ask(1, 1, kLatency, &calls);
  clock.Advance(100, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  EXPECT_EQ(calls, 1);
}

TEST(ClockStateTest, CallUnderWayEndsAlthoughTheOldClockIsWantedAgain) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 0, kLatency, &calls);
  clock.Ask(0, 1, kLatency, &calls);
  clock.Advance(3, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  clock.Advance(4, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 0);
  EXPECT_EQ(calls, 2);
}

TEST(ClockStateTest, CallThatEndsWhenAKnobIsAskedForHasEnded) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 0, kLatency, &calls);
  clock.Ask(0, 2, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  EXPECT_EQ(clock.call_end_seconds, 4);
}

TEST(ClockStateTest, RestOfACallGoesOnInTheNextIteration) {
  ClockState clock;
  std::int64_t calls = 0;
  clock.Ask(1, 9, kLatency, &calls);
  clock.EndIteration(10, kLatency, &calls);
  EXPECT_TRUE(clock.calling());
  EXPECT_EQ(clock.call_end_seconds, 1);
  clock.Advance(1, kLatency, &calls);
  EXPECT_EQ(clock.in_effect, 1);
  // States after calls that are over are alike, whenever they ended.
  EXPECT_EQ(clock, (ClockState{.in_effect = 1, .newest = 1}));
}

}  // namespace
}  // namespace perseus::emulate
