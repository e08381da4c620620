// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/lane_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perseus/conditions.h"
#include "plan/pipelines.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"
#include "robust/trials.h"
#include "robust/window_replay.h"

namespace perseus::robust {
namespace {

using robust_testing::OptionsAt;
using robust_testing::RandomKnobs;
using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

bool Near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

ClockSwitching RandomSwitching(std::mt19937& random, const CostedPipeline& pipeline) {
  ClockSwitching switching;
  switching.call_ahead = static_cast<CallAhead>(random() % 3);
  switching.latency_seconds = (random() % 5) * 0.5 * ShortestSeconds(pipeline);
  if (random() % 2 == 0) {
    for (const Knob& knob : pipeline.knobs) {
      const double seconds = (random() % 5) * 0.5 * switching.latency_seconds;
      if (random() % 3 == 0) switching.latency_at.push_back({knob.number, seconds});
    }
  }
  switching.stall_seconds = (random() % 2) * 0.1 * ShortestSeconds(pipeline);
  return switching;
}

RC_GTEST_PROP(LaneReplayProperty, WhatIsTriedIsWhatAFreshReplayFinds, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 4, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const ClockSwitching switching = RandomSwitching(random, pipeline);
  TimeNoise noise;
  noise.per_computation = (random() % 2) * 0.05;
  noise.per_gpu = (random() % 2) * 0.05;
  const Samples samples = DrawSamples(pipeline, noise, 2, 16, random());
  LaneReplay replay(pipeline, switching, samples);
  replay.Reset(RandomKnobs(random, pipeline));
  for (int k = 0; k < 20; ++k) {
    std::vector<int> other = replay.knobs();
    std::vector<KnobChange> changes;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      if (random() % 8 != 0) continue;
      changes.push_back({i, static_cast<int>(random() % 4)});
      other[i] = changes.back().knob;
    }
    const LaneFigures tried = replay.Try(changes);
    LaneReplay fresh(pipeline, switching, samples);
    fresh.Reset(other);
    RC_ASSERT(tried.seconds == fresh.figures().seconds);
    RC_ASSERT(tried.changes == fresh.figures().changes);
    RC_ASSERT(Near(tried.effective_joules, fresh.figures().effective_joules));
    if (random() % 2 == 0) {
      replay.Commit();
    } else {
      replay.Discard();
    }
  }
}

// Wide registers change no bit. And lanes know nothing of each other, unless clocks are called for
// ahead: see LaneReplay::Node::calling.
RC_GTEST_PROP(LaneReplayProperty, WidthOfRegistersChangesNothing, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 4, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const ClockSwitching switching = RandomSwitching(random, pipeline);
  TimeNoise noise;
  noise.per_computation = 0.05;
  constexpr int kLanes = 16;
  Samples samples = DrawSamples(pipeline, noise, 1, kLanes, random());
  // Each lane is a group, whose time can be asked for.
  std::iota(samples.group.begin(), samples.group.end(), 0);
  samples.jobs_of.assign(kLanes, 1);
  samples.scale.assign(kLanes, 1.0);
  const std::vector<int> knobs = RandomKnobs(random, pipeline);
  LaneReplay twos(pipeline, switching, samples, /*in_fours=*/false);
  LaneReplay widest(pipeline, switching, samples);
  twos.Reset(knobs);
  widest.Reset(knobs);
  RC_ASSERT(widest.GroupSums() == twos.GroupSums());
  RC_ASSERT(widest.figures().effective_joules == twos.figures().effective_joules);
  if (switching.call_ahead == CallAhead::kPredicted) return;
  for (int lane = 0; lane < kLanes; ++lane) {
    Samples alone = DrawSamples(pipeline, {}, 1, 1, 0);
    for (int i = 0; i < pipeline.dag.size(); ++i) alone.time[i] = samples.TimeOf(i)[lane];
    LaneReplay one(pipeline, switching, alone);
    one.Reset(knobs);
    RC_ASSERT(Near(widest.GroupSums()[lane], one.GroupSums()[0]));
  }
}

// Where calls begin with computations that outlast them the model is exact.
RC_GTEST_PROP(LaneReplayProperty, IsExactWhereCallsEndWithinComputations, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 4, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  Conditions conditions;
  conditions.switching.latency_seconds = 0.9 * ShortestSeconds(pipeline);
  for (const Knob& knob : pipeline.knobs) {
    conditions.switching.latency_at.push_back(
        {knob.number, 0.3 * static_cast<double>(random() % 4) * ShortestSeconds(pipeline)});
  }
  const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
  LaneReplay replay(pipeline, conditions.switching, samples);
  replay.Reset(RandomKnobs(random, pipeline));
  const ReplayedRun run = ReplayJob(pipeline, OptionsAt(pipeline, replay.knobs()),
                                    Waiting::kSetClock, conditions, 1, 3, 0);
  const LaneFigures& figures = replay.figures();
  RC_ASSERT(Near(figures.seconds, run.seconds.back()));
  RC_ASSERT(Near(figures.effective_joules + pipeline.total_blocking_power_watts * figures.seconds,
                 run.joules.back()));
}

// A clock that a kind lacks, and that is still in effect when it begins, counts as the nearest
// clock that it has, which may not be the nearest row; a label that it lacks, as its own.
TEST(LaneReplayTest, TakesForALateClockWhatTheReplayOfAJobTakes) {
  for (const bool labels : {false, true}) {
    const auto rows = [&](const char* cell, std::vector<std::pair<const char*, double>> knobs) {
      std::string text;
      for (const auto& [knob, seconds] : knobs) {
        text += fmt::format("{},{},{},{}\n", cell, labels ? fmt::format("k{}", knob) : knob,
                            seconds, 600 - 100 * seconds);
      }
      return text;
    };
    const CostedPipeline pipeline =
        plan_testing::Costed(rows("0,forward", {{"1400", 1.0}, {"500", 2.0}, {"450", 2.1}}) +
                                 rows("0,backward", {{"1400", 2.0}, {"450", 3.1}}),
                             plan_testing::DagOf("1f1b", 1, 2), plan_testing::Blocking(20));
    ASSERT_EQ(pipeline.knobs.size(), 3U);
    std::vector<int> knobs;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const bool forward = pipeline.dag.computations[i].id.type == ComputationType::kForward;
      knobs.push_back(forward ? 1 : labels ? 2 : 0);
    }
    Conditions conditions;
    conditions.switching.latency_seconds = 0.5;
    const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
    LaneReplay lanes(pipeline, conditions.switching, samples);
    lanes.Reset(knobs);
    const ReplayedRun run =
        ReplayJob(pipeline, OptionsAt(pipeline, knobs), Waiting::kSetClock, conditions, 1, 3, 0);
    EXPECT_NEAR(lanes.figures().seconds, run.seconds.back(), 1e-9) << labels;
    WindowReplay window(pipeline, conditions.switching, samples);
    window.Reset(knobs);
    EXPECT_NEAR(window.figures().seconds, run.seconds.back(), 1e-9) << labels;
  }
}

TEST(LaneReplayTest, CriticalityIsTheSlopeOfTheMeanTime) {
  std::mt19937 random(7);
  const Planner planner = RandomPlanner(random, 3, 6, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const Samples samples = DrawSamples(pipeline, {.per_computation = 0.05}, 1, 32, 3);
  LaneReplay replay(pipeline, {}, samples);
  replay.Reset(std::vector<int>(pipeline.dag.size(), 1));
  const std::vector<double> criticality = replay.Criticality();
  const double before = replay.figures().seconds;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const auto& options = pipeline.TableOf(i).all_options;
    const KnobChange change = {i, 2};
    const double longer = options[2].time_seconds - options[1].time_seconds;
    // The mean time is convex in the durations.
    EXPECT_GE(replay.Try({&change, 1}).seconds, before + criticality[i] * longer - 1e-9);
  }
}

}  // namespace
}  // namespace perseus::robust
