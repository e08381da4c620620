// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/recorder.h"

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

// Two computations, on the host from 10 to 20 and from 30 to 50.
void RunIteration(std::int64_t number, Recorder* recorder) {
  recorder->BeginIteration(number, 1000);
  recorder->Begin(0, 1010);
  recorder->End(1020);
  recorder->Begin(1, 1030);
  recorder->End(1050);
  recorder->EndIteration(1060);
}

TEST(RecorderTest, TellsWhatTheHostSaid) {
  Recorder recorder;
  RunIteration(0, &recorder);
  const std::vector<Recorded> taken = recorder.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_TRUE(taken[0].good);
  ASSERT_EQ(taken[0].iteration.spans.size(), 2U);
  EXPECT_EQ(taken[0].iteration.spans[1].begin_ns, 1030);
  EXPECT_EQ(taken[0].iteration.spans[1].end_ns, 1050);
}

TEST(RecorderTest, TheDevicesTimesReplaceTheHosts) {
  Recorder recorder;
  recorder.SetTimes(-1, {});  // From now on they are waited for.
  RunIteration(0, &recorder);
  EXPECT_TRUE(recorder.Take().empty());
  recorder.SetTimes(0, {{12, 40}, {45, 90}});
  const std::vector<Recorded> taken = recorder.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_TRUE(taken[0].good);
  EXPECT_EQ(taken[0].iteration.spans[0].begin_ns, 1012);
  EXPECT_EQ(taken[0].iteration.spans[0].end_ns, 1040);
  EXPECT_EQ(taken[0].iteration.end_ns, 1090);
}

TEST(RecorderTest, ABeginALittleBeforeTheIterationIsItsBegin) {
  Recorder recorder;
  recorder.SetTimes(-1, {});
  RunIteration(0, &recorder);
  recorder.SetTimes(0, {{-3, 40}, {45, 90}});
  const std::vector<Recorded> taken = recorder.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_TRUE(taken[0].good);
  EXPECT_EQ(taken[0].iteration.spans[0].begin_ns, 1000);
}

TEST(RecorderTest, TimesThatDoNotFitOrDoNotComeMakeNoGoodIteration) {
  Recorder recorder;
  recorder.SetTimes(-1, {});
  RunIteration(0, &recorder);
  recorder.SetTimes(0, {{0, 40}});
  for (int i = 1; i <= 4; ++i) RunIteration(i, &recorder);
  const std::vector<Recorded> taken = recorder.Take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_FALSE(taken[0].good);
  EXPECT_FALSE(taken[1].good);
}

TEST(RecorderTest, WhatBrokeOffIsNotGood) {
  Recorder recorder;
  recorder.BeginIteration(0, 0);
  recorder.Begin(0, 1);
  recorder.AbandonIteration();
  RunIteration(1, &recorder);
  const std::vector<Recorded> taken = recorder.Take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_FALSE(taken[0].good);
  EXPECT_TRUE(taken[1].good);
}

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
