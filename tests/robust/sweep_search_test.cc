// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "robust/clock_search.h"
#include "robust/lane_replay.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"
#include "robust/window_replay.h"

namespace perseus::robust {
namespace {

using robust_testing::RandomKnobs;
using robust_testing::RandomPlanner;

// Least joules within the goal of all choices of a pipeline without noise.
double LeastOfAll(const CostedPipeline& pipeline, const Samples& samples, const SearchGoal& goal) {
  LaneReplay replay(pipeline, {}, samples);
  const int knobs = static_cast<int>(pipeline.knobs.size());
  std::vector<int> choice(pipeline.dag.size(), 0);
  double least = 1e300;
  for (int i = 0; i < pipeline.dag.size();) {
    replay.Reset(choice);
    const LaneFigures& figures = replay.figures();
    if (figures.seconds <= goal.accepted_seconds && figures.changes <= goal.most_changes) {
      least = std::min(least, figures.effective_joules + goal.waiting_watts * figures.seconds);
    }
    for (i = 0; i < pipeline.dag.size(); ++i) {
      choice[i] = (choice[i] + 1) % knobs;
      if (choice[i] != 0) break;
    }
  }
  return least;
}

TEST(SweepSearchTest, FindsTheLeastOfAllChoicesOfSmallPipelines) {
  std::mt19937 random(11);
  for (int k = 0; k < 12; ++k) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    const CostedPipeline& pipeline = planner.pipeline();
    const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
    std::vector<int> knobs;
    for (const CostOption& option : planner.baseline().options) knobs.push_back(option.knob);
    WindowReplay replay(pipeline, {}, samples);
    replay.Reset(knobs);
    const double watts = pipeline.total_blocking_power_watts;
    const double joules = planner.baseline().energy_joules;
    const SearchGoal goal = {.accepted_seconds = replay.figures().seconds * 1.1,
                             .waiting_watts = watts,
                             .most_changes = static_cast<int>(2 + random() % 4),
                             .price_of_time = joules / replay.figures().seconds,
                             .price_of_change = 1e-3 * joules};
    SweepSearch search(pipeline, &replay, k);
    const double each = joules / pipeline.dag.size();
    const Chosen chosen = search.Anneal(
        goal, {.work = 2000000, .hot_joules = 0.1 * each, .cold_joules = 1e-4 * each});
    ASSERT_FALSE(chosen.knobs.empty());
    // A walk, and no proof: so near that not much is missed.
    EXPECT_LE(chosen.joules, LeastOfAll(pipeline, samples, goal) * 1.002);
  }
}

// What is said of a choice is what it comes to, and it keeps the limits.
RC_GTEST_PROP(SweepSearchProperty, SaysWhatItsChoiceComesTo, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 6, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const TimeNoise noise = {.per_computation = (random() % 2) * 0.02};
  const Samples samples = DrawSamples(pipeline, noise, 1, 16, random());
  WindowReplay replay(pipeline, {}, samples);
  replay.Reset(RandomKnobs(random, pipeline));
  const SearchGoal goal = {.accepted_seconds = replay.figures().seconds,
                           .waiting_watts = pipeline.total_blocking_power_watts,
                           .most_changes = static_cast<int>(random() % 30),
                           .price_of_time = 100};
  SweepSearch search(pipeline, &replay, random());
  const Chosen chosen = search.Anneal(goal, {.work = 300000, .hot_joules = 1, .cold_joules = 0.01});
  if (chosen.knobs.empty()) return;
  LaneReplay lanes(pipeline, {}, samples);
  lanes.Reset(chosen.knobs);
  RC_ASSERT(lanes.figures().changes == chosen.figures.changes);
  RC_ASSERT(chosen.figures.changes <= goal.most_changes);
  RC_ASSERT(lanes.figures().seconds <= goal.accepted_seconds * (1 + 1e-12));
  const double joules =
      lanes.figures().effective_joules + goal.waiting_watts * lanes.figures().seconds;
  RC_ASSERT(std::abs(joules - chosen.joules) <= 1e-9 * std::abs(joules));
}

}  // namespace
}  // namespace perseus::robust
