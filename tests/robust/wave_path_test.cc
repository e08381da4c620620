// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "robust/bounds.h"
#include "robust/lane_replay.h"
#include "robust/paths.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"

namespace perseus::robust {
namespace {

using robust_testing::RandomPlanner;

// [computation]: whether it is reached from one of `from`.
std::vector<char> After(const PipelineDag& dag, const std::vector<char>& from) {
  std::vector<char> after(dag.size(), 0);
  for (int i = 0; i < dag.size(); ++i) {
    for (int k = dag.first_precedence[i]; k < dag.first_precedence[i + 1]; ++k) {
      const int before = dag.precedences[k].from;
      if (after[before] != 0 || from[before] != 0) after[i] = 1;
    }
  }
  return after;
}

bool OnOnePath(const PipelineDag& dag, const std::vector<char>& some) {
  const std::vector<char> after = After(dag, some);
  for (int i = 0; i < dag.size(); ++i) {
    if (some[i] != 0 && after[i] != 0) return true;
  }
  return false;
}

TEST(WavePathTest, AWaveLiesOnNoCommonPath) {
  constexpr int kRanks = 4;
  const PipelineDag dag = plan_testing::DagOf("1f1b", kRanks, 16);
  const std::vector<char> all(kRanks, 1);
  for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
    const int slant = type == ComputationType::kForward ? -1 : 1;
    // Two waves; of the first those that lie in the middle of the iteration.
    for (const int tried : {-1, 0, 1}) {
      const std::vector<char> in = InWaves(dag, {type, tried, 2}, all);
      EXPECT_EQ(std::count(in.begin(), in.end(), 1), 2 * kRanks);
      std::vector<char> one(dag.size(), 0);
      for (int i = 0; i < dag.size(); ++i) {
        const Computation& computation = dag.computations[i];
        const int shifted = computation.id.microbatch - tried * computation.rank;
        one[i] = in[i] != 0 && shifted == 7 ? 1 : 0;
      }
      EXPECT_EQ(std::count(one.begin(), one.end(), 1), kRanks);
      EXPECT_EQ(OnOnePath(dag, one), tried != slant) << tried;
    }
  }
}

TEST(WavePathTest, OnlyRanksThatAreAskedForAreInWaves) {
  const PipelineDag dag = plan_testing::DagOf("1f1b", 3, 6);
  const std::vector<char> in =
      InWaves(dag, {ComputationType::kForward, 0, 100}, std::vector<char>{1, 0, 1});
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    EXPECT_EQ(in[i] != 0,
              computation.rank != 1 && computation.id.type == ComputationType::kForward);
  }
}

TEST(WavePathTest, KeepsTheLimits) {
  std::mt19937 random(7);
  for (int run = 0; run < 3; ++run) {
    const Planner planner = RandomPlanner(random, 3, 12, 6);
    const CostedPipeline& pipeline = planner.pipeline();
    const Samples samples = DrawSamples(pipeline, {.per_computation = 0.01 * run}, 1, 8, random());
    LaneReplay replay(pipeline, {}, samples);
    replay.Reset(std::vector<int>(pipeline.dag.size(), 0));
    const WaveLimits limits = {.accepted_seconds = replay.figures().seconds * 1.02,
                               .waiting_watts = pipeline.total_blocking_power_watts,
                               .most_changes = 24};
    const double baseline =
        replay.figures().effective_joules + limits.waiting_watts * replay.figures().seconds;
    const DualBound dual =
        PricesForChanges(pipeline, samples, limits.accepted_seconds, limits.most_changes, 100);
    const std::vector<int> knobs = BestInWaves(pipeline, dual, limits, &replay);
    ASSERT_FALSE(knobs.empty());
    replay.Reset(knobs);
    EXPECT_LE(replay.figures().seconds, limits.accepted_seconds);
    EXPECT_LE(replay.figures().changes, limits.most_changes);
    EXPECT_LT(replay.figures().effective_joules + limits.waiting_watts * replay.figures().seconds,
              baseline);
  }
}

}  // namespace
}  // namespace perseus::robust
