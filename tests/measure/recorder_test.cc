// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/recorder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

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

}  // namespace
}  // namespace perseus::measure
