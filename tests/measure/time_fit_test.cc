// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "measure/profile_fit.h"

namespace perseus::measure {
namespace {

TEST(SummariseTimes, LeavesOutliersOut) {
  std::vector<TimeSample> samples;
  for (int i = 0; i < 20; ++i) samples.push_back({0.050 + 0.0005 * (i % 5 - 2), 0});
  samples.push_back({1.5, 0});  // The trainer paused.
  const TimeSummary summary = SummariseTimes(samples);
  EXPECT_EQ(summary.samples, 20);
  EXPECT_NEAR(summary.seconds, 0.050, 1e-12);
  EXPECT_FALSE(summary.per_work);
}

TEST(SummariseTimes, FitsALineWhereWorkVaries) {
  std::vector<TimeSample> samples;
  for (int i = 0; i < 12; ++i)
    samples.push_back({0.01 + 2e-5 * (1000 + 100 * i), 1000.0 + 100 * i});
  const TimeSummary summary = SummariseTimes(samples);
  ASSERT_TRUE(summary.per_work);
  EXPECT_NEAR(*summary.per_work, 2e-5, 1e-12);
  EXPECT_NEAR(summary.seconds, 0.01 + 2e-5 * summary.work, 1e-9);
}

TEST(SummariseTimes, OneWorkOrNoneIsNoLine) {
  EXPECT_EQ(SummariseTimes({}).samples, 0);
  EXPECT_FALSE(SummariseTimes({{0.1, 5}, {0.11, 5}, {0.1, 5}, {0.12, 5}, {0.1, 5}}).per_work);
  EXPECT_FALSE(SummariseTimes({{0.1, 5}, {0.2, 0}, {0.1, 5}, {0.3, 9}, {0.1, 7}}).per_work);
}

// The order of samples says nothing.
RC_GTEST_PROP(SummariseTimes, DoesNotDependOnTheOrder, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<TimeSample> samples;
  for (int i = 0; i < 30; ++i) {
    const double work = 100 + 10 * normal(random);
    samples.push_back({0.05 + 1e-4 * work + 1e-3 * normal(random), work});
  }
  const TimeSummary first = SummariseTimes(samples);
  std::shuffle(samples.begin(), samples.end(), random);
  const TimeSummary second = SummariseTimes(samples);
  RC_ASSERT(first.samples == second.samples);
  RC_ASSERT(std::abs(first.seconds - second.seconds) < 1e-12);
  RC_ASSERT(std::abs(*first.per_work - *second.per_work) < 1e-12);
}

}  // namespace
}  // namespace perseus::measure
