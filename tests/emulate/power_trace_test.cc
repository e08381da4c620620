// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/power_trace.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace perseus::emulate {
namespace {

double Joules(const PowerTrace& trace) {
  return trace.interval_seconds * std::accumulate(trace.watts.begin(), trace.watts.end(), 0.0);
}

TEST(PowerTraceTest, ValuesAreMeansOverIntervals) {
  PowerTraceBuilder builder(1, false, 100);
  builder.BeginIteration(0);
  // Within one interval, over two, over four.
  const std::vector<PowerSegment> segments = {{0.25, 0.75, 8}, {0.5, 1.5, 4}, {0.5, 3.25, 100}};
  ASSERT_TRUE(builder.Add(segments, 3.25, 1));
  const PowerTrace trace = builder.Finish(3.25);
  EXPECT_EQ(trace.interval_seconds, 1);
  EXPECT_EQ(trace.watts, (std::vector<double>{56, 102, 100, 25}));
}

TEST(PowerTraceTest, CopiesCountAndIterationsFollow) {
  PowerTraceBuilder builder(2, false, 100);
  builder.BeginIteration(0);
  const std::vector<PowerSegment> segment = {{0, 3, 10}};
  ASSERT_TRUE(builder.Add(segment, 3, 4));
  builder.BeginIteration(3);
  ASSERT_TRUE(builder.Add(segment, 3, 1));
  EXPECT_EQ(builder.Finish(6).watts, (std::vector<double>{40, 25, 10}));
}

TEST(PowerTraceTest, RefusesMoreValuesThanAllowed) {
  PowerTraceBuilder builder(1, false, 10);
  builder.BeginIteration(0);
  const std::vector<PowerSegment> segment = {{0, 20, 10}};
  EXPECT_FALSE(builder.Add(segment, 20, 1));
}

TEST(PowerTraceTest, LengthensTheIntervalAndKeepsTheEnergy) {
  PowerTraceBuilder builder(1, true, 10);
  double end = 0;
  for (int n = 0; n < 20; ++n) {
    builder.BeginIteration(end);
    const std::vector<PowerSegment> segments = {{0, 3, 10}, {0.1, 1.7, 5}};
    ASSERT_TRUE(builder.Add(segments, 3, 2));
    end += 3;
  }
  const PowerTrace trace = builder.Finish(end);
  EXPECT_EQ(trace.interval_seconds, 8);
  ASSERT_EQ(trace.watts.size(), 8);
  EXPECT_NEAR(Joules(trace), 20 * 2 * (30 + 8), 1e-9);
  // Each 8 s hold 20 W and 16 J from each of the 3 s.
  EXPECT_NEAR(trace.watts[3], 20 + 16.0 / 3, 1);
}

TEST(PowerTraceTest, LateInALongJobNoDigitsAreLost) {
  PowerTraceBuilder builder(1e6, false, 100'000);
  builder.BeginIteration(1e9 + 0.25);
  std::vector<PowerSegment> segments(1000, {0.1, 0.100001, 1});
  ASSERT_TRUE(builder.Add(segments, 0.100001, 1));
  EXPECT_NEAR(Joules(builder.Finish(1e9 + 1)) / 1e-3, 1, 1e-9);
}

}  // namespace
}  // namespace perseus::emulate
