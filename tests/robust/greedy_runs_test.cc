// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "robust/ladder_search.h"
#include "robust/lane_replay.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"

namespace perseus::robust {
namespace {

// What anyone would try by hand: one rank slower, but for its first and last computation.
TEST(GreedyRunsTest, SaveWhatOneRunSaves) {
  std::mt19937 random(22);
  for (int run = 0; run < 8; ++run) {
    const Planner planner = robust_testing::RandomPlanner(random, 4, 8, 8);
    const CostedPipeline& pipeline = planner.pipeline();
    const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
    LaneReplay replay(pipeline, {}, samples);
    std::vector<int> fastest;
    for (const CostOption& option : planner.baseline().options) fastest.push_back(option.knob);
    replay.Reset(fastest);
    RunLimits limits;
    limits.baseline_seconds = replay.figures().seconds;
    limits.accepted_seconds = limits.baseline_seconds * 1.01;
    limits.waiting_watts = pipeline.total_blocking_power_watts;
    limits.most_changes = 2;
    limits.most_tries = 1500;
    const auto joules = [&](const std::vector<int>& knobs) {
      replay.Reset(knobs);
      const LaneFigures& figures = replay.figures();
      if (figures.seconds > limits.accepted_seconds) return 1e300;
      return figures.effective_joules + limits.waiting_watts * figures.seconds;
    };
    double by_hand = joules(fastest);
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      for (int knob = 0; knob < 8; ++knob) {
        std::vector<int> knobs = fastest;
        for (std::size_t k = 1; k + 1 < order.size(); ++k) knobs[order[k]] = knob;
        by_hand = std::min(by_hand, joules(knobs));
      }
    }
    const std::vector<int> found = WithGreedyRuns(pipeline, fastest, limits, &replay);
    ASSERT_FALSE(found.empty());
    EXPECT_LT(joules(found), joules(fastest)) << run;
    EXPECT_LE(joules(found), by_hand * (1 + 1e-9)) << run;
    replay.Reset(found);
    EXPECT_LE(replay.figures().changes, limits.most_changes) << run;
  }
}

}  // namespace
}  // namespace perseus::robust
