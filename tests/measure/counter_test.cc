// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/recorder.h"

namespace perseus::measure {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(CounterReader, AnUnchangedReadIsNoData) {
  CounterReader counter;
  EXPECT_FALSE(counter.Add(10, 0, 1 * kMs));
  for (int i = 1; i < 50; ++i) EXPECT_FALSE(counter.Add(10, i * 2 * kMs, i * 2 * kMs + kMs));
  const auto tick = counter.Add(13, 100 * kMs, 101 * kMs);
  ASSERT_TRUE(tick);
  EXPECT_EQ(tick->after_ns, 98 * kMs);  // Begin of the last read that showed the old value,
  EXPECT_EQ(tick->by_ns, 101 * kMs);    // end of the first that showed the new one.
  EXPECT_EQ(tick->joules, 13);
}

TEST(CounterReader, ACounterThatBeganAnewSaysNothingOnce) {
  CounterReader counter;
  counter.Add(10, 0, 1);
  EXPECT_TRUE(counter.Add(11, 10, 11));
  EXPECT_FALSE(counter.Add(0.5, 20, 21));  // The driver was loaded anew.
  const auto tick = counter.Add(0.7, 30, 31);
  ASSERT_TRUE(tick);
  EXPECT_FALSE(tick->follows);
}

TEST(CounterReader, AfterAPauseStepsDoNotFollow) {
  CounterReader counter;
  counter.Add(10, 0, 1);
  counter.Add(11, 10, 11);
  EXPECT_TRUE(counter.Add(12, 20, 21)->follows);
  counter.Pause();
  EXPECT_FALSE(counter.Add(15, 500, 501)->follows);
  EXPECT_TRUE(counter.Add(16, 510, 511)->follows);
}

// However often it is read, the steps are those of the counter, each lies where it says, and the
// period is found.
RC_GTEST_PROP(CounterReader, FindsTheStepsOfAnyCounter, ()) {
  const std::int64_t period = *rc::gen::inRange<std::int64_t>(20, 101) * kMs;
  const std::int64_t phase = *rc::gen::inRange<std::int64_t>(0, period);
  CounterReader counter;
  std::int64_t now = 0;
  std::int64_t steps = -1;
  while (steps < 40) {
    now += *rc::gen::inRange<std::int64_t>(kMs / 2, 4 * kMs);
    const std::int64_t passed = (now + period - phase) / period;
    const auto tick = counter.Add(static_cast<double>(passed) * 3, now, now);
    RC_ASSERT(!tick || passed != steps);
    if (tick) {
      const std::int64_t at = phase + (passed - 1) * period;
      RC_ASSERT(tick->after_ns <= at);
      RC_ASSERT(at <= tick->by_ns);
    }
    steps = passed;
  }
  RC_ASSERT(std::abs(*counter.period_seconds() * 1e9 - static_cast<double>(period)) < 2.0 * kMs);
}

}  // namespace
}  // namespace perseus::measure
