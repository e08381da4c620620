// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "robust/bounds.h"
#include "robust/lane_replay.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"

namespace perseus::robust {
namespace {

using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

constexpr int kAll = 6561;  // 3 clocks, 8 computations.

// The least effective energy of all choices that are in time, by trying them.
double Least(LaneReplay* replay, double accepted) {
  double least = 1e300;
  std::vector<int> knobs(8, 0);
  for (int code = 0; code < kAll; ++code) {
    for (int i = 0, rest = code; i < 8; ++i, rest /= 3) knobs[i] = rest % 3;
    replay->Reset(knobs);
    if (replay->figures().seconds > accepted) continue;
    least = std::min(least, replay->figures().effective_joules);
  }
  return least;
}

double BaselineSeconds(LaneReplay* replay) {
  replay->Reset(std::vector<int>(8, 0));
  return replay->figures().seconds;
}

TEST(DualBoundTest, IsBelowTheProvenOptimumWithLateClocks) {
  std::mt19937 random(3);
  double nearest = 1e300;
  for (int run = 0; run < 12; ++run) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    const CostedPipeline& pipeline = planner.pipeline();
    ClockSwitching switching;
    switching.latency_seconds = 0.8 * ShortestSeconds(pipeline);
    const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
    LaneReplay replay(pipeline, switching, samples);
    const double accepted = BaselineSeconds(&replay) * (1 + 0.05 * (run % 4));
    const double least = Least(&replay, accepted);
    const DualBound bound =
        BoundByPrices(pipeline, samples, accepted, switching.latency_seconds, 400);
    const DualBound at_once = BoundByPrices(pipeline, samples, accepted, 0, 400);
    EXPECT_LE(bound.effective_joules, least + 1e-9 * std::abs(least));
    EXPECT_LE(at_once.effective_joules, least + 1e-9 * std::abs(least));
    nearest = std::min(nearest, (least - bound.effective_joules) / std::abs(least));
  }
  EXPECT_LT(nearest, 0.05);  // And no bound out of the blue.
}

TEST(DualBoundTest, IsBelowTheProvenOptimumOfTheSamples) {
  std::mt19937 random(4);
  for (int run = 0; run < 6; ++run) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    const CostedPipeline& pipeline = planner.pipeline();
    const Samples samples =
        DrawSamples(pipeline, {.per_computation = 0.05}, run % 2 + 1, 8, random());
    LaneReplay replay(pipeline, {}, samples);
    const double accepted = BaselineSeconds(&replay) * 1.02;
    const double least = Least(&replay, accepted);
    const DualBound bound = BoundByPrices(pipeline, samples, accepted, 0, 400);
    EXPECT_LE(bound.effective_joules, least + 1e-9 * std::abs(least));
    EXPECT_GE(bound.effective_joules, least - 0.2 * std::abs(least));
  }
}

TEST(DualBoundTest, MeetsTheFrontier) {
  std::mt19937 random(5);
  const Planner planner = RandomPlanner(random, 3, 6, 5);
  const CostedPipeline& pipeline = planner.pipeline();
  const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
  const double seconds = planner.baseline().iteration_time_seconds * 1.05;
  const double exact =
      planner.lower_bound().EnergyAt(seconds) - pipeline.total_blocking_power_watts * seconds;
  const DualBound bound = BoundByPrices(pipeline, samples, seconds, 0, 4000);
  EXPECT_LE(bound.effective_joules, exact + 1e-9 * std::abs(exact));
  EXPECT_GE(bound.effective_joules, exact - 0.01 * std::abs(exact));
}

// Without a change between a rank's computations its clocks are one; with many allowed
// the prices are those without a limit.
TEST(PricesForChangesTest, SitBetweenNoChangesAndAnyNumber) {
  std::mt19937 random(6);
  for (int run = 0; run < 4; ++run) {
    const Planner planner = RandomPlanner(random, 3, 8, 5);
    const CostedPipeline& pipeline = planner.pipeline();
    const Samples samples =
        DrawSamples(pipeline, {.per_computation = 0.02 * (run % 2)}, 1, 8, random());
    LaneReplay replay(pipeline, {}, samples);
    replay.Reset(std::vector<int>(pipeline.dag.size(), 0));
    const double accepted = replay.figures().seconds * 1.03;
    const DualBound free = BoundByPrices(pipeline, samples, accepted, 0, 400);
    double above = 1e300;
    double dear = 1e300;
    for (const int most : {2, 6, 12, 24}) {
      const DualBound limited = PricesForChanges(pipeline, samples, accepted, most, 400);
      // Fewer changes cost energy, and each is worth more.
      EXPECT_LE(limited.effective_joules, above + 0.005 * std::abs(above));
      EXPECT_LE(limited.change_joules, dear * 1.1);
      EXPECT_GE(limited.effective_joules,
                free.effective_joules - 0.01 * std::abs(free.effective_joules));
      above = limited.effective_joules;
      dear = limited.change_joules;
      // At these prices ranks change about as often as they may.
      std::vector<double> price = limited.price;
      const int fewer =
          CountChanges(pipeline.dag, CheapestKnobs(pipeline, price, 2 * limited.change_joules));
      const int more =
          CountChanges(pipeline.dag, CheapestKnobs(pipeline, price, limited.change_joules / 2));
      EXPECT_LE(fewer, most + 2);
      EXPECT_GE(more, most - 2);
      ASSERT_EQ(limited.seconds.size(), static_cast<std::size_t>(pipeline.dag.size()));
      for (int i = 0; i < pipeline.dag.size(); ++i) {
        EXPECT_GE(limited.price[i], 0);
        const auto& all = pipeline.TableOf(i).all_options;
        const auto [least, most_seconds] = std::minmax_element(
            all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.time_seconds < b.time_seconds; });
        EXPECT_GE(limited.seconds[i], least->time_seconds * (1 - 1e-9));
        EXPECT_LE(limited.seconds[i], most_seconds->time_seconds * (1 + 1e-9));
      }
    }
    // As many as there are computations are no limit.
    const DualBound any = PricesForChanges(pipeline, samples, accepted, pipeline.dag.size(), 400);
    EXPECT_NEAR(any.effective_joules, free.effective_joules,
                0.005 * std::abs(free.effective_joules));
    EXPECT_LT(any.effective_joules, above + 0.005 * std::abs(above));
  }
}

}  // namespace
}  // namespace perseus::robust
