// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "plan/pipelines.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"
#include "robust/window_replay.h"

namespace perseus::robust {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;

// Two stages, of which the second is twice as slow: with GPipe, half of all microbatches are
// under way when the first stage has done its forwards.
CostedPipeline SlowSecondStage(const char* schedule, int microbatches) {
  return Costed(
      "0,forward,1000,1,100\n0,backward,1000,2,200\n"
      "1,forward,1000,2,200\n1,backward,1000,4,400\n",
      DagOf(schedule, 2, microbatches), Blocking(20));
}

TEST(TimeOrderTest, MostAcrossOneCutIsThatOfTheCutsListed) {
  std::mt19937 random(7);
  for (int k = 0; k < 20; ++k) {
    const int stages = 1 + static_cast<int>(random() % 4);
    const int microbatches = 1 + static_cast<int>(random() % 8);
    const Planner planner = robust_testing::RandomPlanner(random, stages, microbatches, 3);
    const TimeOrder order(planner.pipeline());
    std::size_t most = 0;
    std::int64_t sum = 0;
    for (int place = 0; place < order.size(); ++place) {
      ASSERT_EQ(order.EndOfCutBehind(place), place + 1);
      most = std::max(most, order.AcrossCutBehind(place).size());
      sum += static_cast<std::int64_t>(order.AcrossCutBehind(place).size());
    }
    EXPECT_EQ(TimeOrder::MostAcrossOneCut(planner.pipeline()), static_cast<std::int64_t>(most));
    EXPECT_EQ(order.num_cut_arcs(), sum);
  }
}

TEST(TimeOrderTest, ListsNoMoreArcsThanAllowedWhereMuchIsUnderWay) {
  const CostedPipeline pipeline = SlowSecondStage("gpipe", 500);
  const std::int64_t all = TimeOrder(pipeline).num_cut_arcs();
  ASSERT_GT(all, 100'000);  // With the square of the microbatches.
  for (const std::int64_t most : {100'000, 10'000, 1'000}) {
    const TimeOrder order(pipeline, most);
    EXPECT_LE(order.num_cut_arcs(), most);
    EXPECT_GT(order.num_cut_arcs(), 0);
  }
}

TEST(TimeOrderTest, AWindowSuitsWhereEveryCutIsShort) {
  constexpr int kMicrobatches = 10'000;
  const CostedPipeline gpipe = SlowSecondStage("gpipe", kMicrobatches);
  const Samples samples = DrawSamples(gpipe, {}, 1, 1, 0);
  EXPECT_GT(TimeOrder::MostAcrossOneCut(gpipe), kMicrobatches / 2);
  EXPECT_FALSE(WindowReplay::Suits(gpipe, {}, samples));
  EXPECT_TRUE(WindowReplay::Suits(SlowSecondStage("1f1b", kMicrobatches), {}, samples));
}

TEST(TimeOrderTest, NoWindowWhereItsRowsWouldTakeMuchMemory) {
  const CostedPipeline pipeline = SlowSecondStage("1f1b", 4);
  Samples samples;
  samples.lanes = (1 << 24) / pipeline.dag.size();
  EXPECT_TRUE(WindowReplay::Suits(pipeline, {}, samples));
  ++samples.lanes;
  EXPECT_FALSE(WindowReplay::Suits(pipeline, {}, samples));
}

TEST(TimeOrderTest, LanesOfWholeJobsAreNotManyTimesThoseWanted) {
  const CostedPipeline pipeline = SlowSecondStage("1f1b", 4);
  for (const int pipelines : {1, 3, 5, 7, 13, 15, 4096}) {
    for (const int lanes : {1, 8, 16, 128}) {
      const Samples samples = DrawSamples(pipeline, {.per_computation = 0.01}, pipelines, lanes, 0);
      EXPECT_LE(samples.lanes, std::max(8, 5 * lanes)) << pipelines << " " << lanes;
      EXPECT_EQ(samples.lanes % samples.pipelines, 0);
      if (lanes < 128) continue;
      EXPECT_EQ(samples.pipelines, std::min(pipelines, 16));
    }
  }
}

}  // namespace
}  // namespace perseus::robust
