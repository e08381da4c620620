// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/kept_runs.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace perseus::emulate {
namespace {

ReplayKey KeyOf(int plan) { return {.plan = plan, .clocks = {{.in_effect = 1}}}; }

PipelineRun RunOf(std::size_t segments) {
  PipelineRun run;
  run.segments.resize(segments);
  return run;
}

TEST(KeptRunsTest, KeepsAsManyAsThereIsRoomFor) {
  KeptRuns runs(100'000);
  EXPECT_EQ(runs.Find(KeyOf(1)), nullptr);
  runs.Keep(KeyOf(1), RunOf(1000));
  const PipelineRun* first = runs.Find(KeyOf(1));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->segments.size(), 1000);
  for (int plan = 2; plan <= 100; ++plan) runs.Keep(KeyOf(plan), RunOf(1000));
  // Of 24 kB each: the fifth is the first that is beyond.
  EXPECT_NE(runs.Find(KeyOf(5)), nullptr);
  EXPECT_EQ(runs.Find(KeyOf(6)), nullptr);
  EXPECT_EQ(runs.Find(KeyOf(100)), nullptr);
  EXPECT_EQ(runs.Find(KeyOf(1)), first);
}

TEST(KeptRunsTest, MakesRoomOnlyWhereThereIsNone) {
  KeptRuns runs(100'000);
  runs.Keep(KeyOf(1), RunOf(1000));
  runs.MakeRoom();
  EXPECT_NE(runs.Find(KeyOf(1)), nullptr);
  runs.Keep(KeyOf(2), RunOf(10'000));
  runs.MakeRoom();
  EXPECT_EQ(runs.Find(KeyOf(1)), nullptr);
  runs.Keep(KeyOf(1), RunOf(1));
  EXPECT_NE(runs.Find(KeyOf(1)), nullptr);
}

TEST(KeptRunsTest, OtherClocksAreAnotherReplay) {
  KeptRuns runs(100'000);
  runs.Keep(KeyOf(1), RunOf(1));
  ReplayKey other = KeyOf(1);
  other.clocks[0].call_end_seconds = 0.5;
  EXPECT_EQ(runs.Find(other), nullptr);
  other = KeyOf(1);
  other.pipeline = 3;
  EXPECT_EQ(runs.Find(other), nullptr);
}

}  // namespace
}  // namespace perseus::emulate
