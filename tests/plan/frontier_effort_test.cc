// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/figures.h"
#include "support/mentions.h"

namespace perseus::plan {
namespace {

using testing::HasSubstr;

// Takes `seconds` at 1 W, and half of it at twice the quantum.
EstimateOf Halving(double seconds) {
  return [seconds](double quantum) { return FrontierEstimate{.seconds = seconds / quantum}; };
}

TEST(FrontierEffortTest, CoarsensWhileItWouldTakeMinutes) {
  EXPECT_EQ(CoarsenUntilQuick(1, Halving(50)), 1);
  EXPECT_EQ(CoarsenUntilQuick(1, Halving(200)), 2);
  EXPECT_EQ(CoarsenUntilQuick(1, Halving(900)), 8);
  // Not for ever: a bound must mean something.
  EXPECT_EQ(CoarsenUntilQuick(1, Halving(1e9)), 16);
}

TEST(FrontierEffortTest, RefusesHoursAndMoreMemoryThanThereIs) {
  EXPECT_TRUE(CheckFrontierEffort(80'000, {.seconds = 600, .bytes = 1e9}));
  const auto slow = CheckFrontierEffort(80'000, {.seconds = 9000, .bytes = 1e9});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::kOverflow);
  EXPECT_THAT(slow.error().message, Mentions("80000", "2.5"));
  EXPECT_FALSE(CheckFrontierEffort(80'000, {.seconds = 600, .bytes = 20e9}));
}

}  // namespace
}  // namespace perseus::plan
