// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/window_replay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "perseus/conditions.h"
#include "robust/lane_replay.h"
#include "robust/robust_testing.h"
#include "robust/samples.h"

namespace perseus::robust {
namespace {

using robust_testing::RandomKnobs;
using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

bool Close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

// Some computations near each other, or anywhere.
std::vector<KnobChange> RandomChanges(std::mt19937& random, const CostedPipeline& pipeline) {
  const int size = pipeline.dag.size();
  const int length = random() % 2 == 0 ? 4 : size;
  const int begin = static_cast<int>(random() % static_cast<unsigned>(size));
  std::vector<KnobChange> changes;
  for (int i = begin; i < std::min(size, begin + length); ++i) {
    if (random() % 3 == 0) changes.push_back({i, static_cast<int>(random() % 4)});
  }
  return changes;
}

// Times by longest paths from both ends are those of a replay from the beginning, whatever
// was tried, kept and taken back before.
RC_GTEST_PROP(WindowReplayProperty, FindsWhatAReplayOfAllLanesFinds, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 5, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  ClockSwitching switching;
  switching.call_ahead = random() % 2 == 0 ? CallAhead::kNone : CallAhead::kPredicted;
  switching.latency_seconds = (random() % 3) * 0.3 * ShortestSeconds(pipeline);
  if (random() % 2 == 0) {
    for (const Knob& knob : pipeline.knobs) {
      const double seconds = (random() % 5) * 0.3 * switching.latency_seconds;
      if (random() % 3 == 0) switching.latency_at.push_back({knob.number, seconds});
    }
  }
  switching.stall_seconds = (random() % 2) * 0.1 * ShortestSeconds(pipeline);
  TimeNoise noise;
  noise.per_computation = (random() % 2) * 0.03;
  noise.per_gpu = (random() % 2) * 0.03;
  const int pipelines = 1 + static_cast<int>(random() % 2);
  const Samples samples = DrawSamples(pipeline, noise, pipelines, 16, random());
  RC_ASSERT(WindowReplay::Suits(pipeline, switching, samples));
  // With a cut behind every place, or behind some.
  const std::int64_t arcs = random() % 2 == 0 ? TimeOrder::kMostCutArcs : 60;
  WindowReplay replay(pipeline, switching, samples, arcs);
  LaneReplay lanes(pipeline, switching, samples);
  const auto agree = [&](const LaneFigures& found) {
    lanes.Reset(replay.knobs());
    return Close(found.seconds, lanes.figures().seconds) &&
           Close(found.effective_joules, lanes.figures().effective_joules) &&
           found.changes == lanes.figures().changes;
  };
  replay.Reset(RandomKnobs(random, pipeline));
  RC_ASSERT(agree(replay.figures()));
  for (int k = 0; k < 40; ++k) {
    if (random() % 8 == 0) replay.Refresh();
    const LaneFigures before = replay.figures();
    const WindowReplay::Cost cost = replay.Begin(RandomChanges(random, pipeline));
    if (random() % 4 == 0) {  // Not even asked how long it takes.
      replay.Discard();
      continue;
    }
    LaneFigures tried = before;
    tried.effective_joules += cost.effective_joules;
    tried.changes += cost.changes;
    tried.seconds = replay.Seconds();
    if (random() % 2 == 0) RC_ASSERT(replay.Seconds() == tried.seconds);
    RC_ASSERT(agree(tried));
    if (random() % 2 == 0) {
      replay.Commit();
      RC_ASSERT(agree(replay.figures()));
    } else {
      replay.Discard();
      RC_ASSERT(agree(before));
    }
  }
}

RC_GTEST_PROP(WindowReplayProperty, WidthOfRegistersChangesNothing, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 5, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  TimeNoise noise;
  noise.per_computation = 0.03;
  const Samples samples = DrawSamples(pipeline, noise, 1 + random() % 2, 16, random());
  WindowReplay twos(pipeline, {}, samples, TimeOrder::kMostCutArcs, /*in_fours=*/false);
  WindowReplay widest(pipeline, {}, samples);
  const std::vector<int> knobs = RandomKnobs(random, pipeline);
  twos.Reset(knobs);
  widest.Reset(knobs);
  RC_ASSERT(widest.figures().seconds == twos.figures().seconds);
  for (int k = 0; k < 20; ++k) {
    const std::vector<KnobChange> changes = RandomChanges(random, pipeline);
    twos.Begin(changes);
    widest.Begin(changes);
    RC_ASSERT(widest.Seconds() == twos.Seconds());
    if (random() % 2 == 0) continue;
    twos.Commit();
    widest.Commit();
  }
}

// The iteration's time is convex in the durations, noise and late clocks or not.
RC_GTEST_PROP(WindowReplayProperty, AMoveTakesNoLessThanItsFirstOrder, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const Planner planner = RandomPlanner(random, 3, 5, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  TimeNoise noise;
  noise.per_computation = (random() % 2) * 0.05;
  noise.per_gpu = (random() % 2) * 0.1;
  ClockSwitching switching;
  switching.call_ahead = random() % 2 == 0 ? CallAhead::kNone : CallAhead::kPredicted;
  switching.latency_seconds = (random() % 2) * 0.6 * ShortestSeconds(pipeline);
  switching.stall_seconds = (random() % 2) * 0.3 * ShortestSeconds(pipeline);
  const Samples samples = DrawSamples(pipeline, noise, 1, 16, random());
  RC_PRE(WindowReplay::Suits(pipeline, switching, samples));
  WindowReplay replay(pipeline, switching, samples);
  replay.Reset(RandomKnobs(random, pipeline));
  replay.Refresh();
  for (int k = 0; k < 20; ++k) {
    const WindowReplay::Cost cost = replay.Begin(RandomChanges(random, pipeline));
    RC_ASSERT(replay.Seconds() >= replay.figures().seconds + cost.seconds - 1e-9);
  }
}

// Asked twice how long a trial takes, it still takes back what it tried.
TEST(WindowReplayTest, SecondsMayBeAskedTwice) {
  std::mt19937 random(5);
  const Planner planner = RandomPlanner(random, 3, 5, 4);
  const CostedPipeline& pipeline = planner.pipeline();
  const Samples samples = DrawSamples(pipeline, {}, 1, 1, 0);
  WindowReplay replay(pipeline, {}, samples);
  const std::vector<int> knobs(pipeline.dag.size(), 0);
  replay.Reset(knobs);
  const auto seconds_of = [&](int computation) {
    replay.Begin(std::vector<KnobChange>{{computation, 3}});
    return replay.Seconds();
  };
  const double first = seconds_of(1);
  const double last = seconds_of(pipeline.dag.size() - 1);
  seconds_of(0);
  EXPECT_EQ(replay.Seconds(), replay.Seconds());
  EXPECT_EQ(seconds_of(1), first);
  EXPECT_EQ(seconds_of(pipeline.dag.size() - 1), last);
}

TEST(WindowReplayTest, SuitsWhereEveryCallEndsBeforeTheNext) {
  std::mt19937 random(3);
  const Planner planner = RandomPlanner(random, 2, 3, 3);
  const CostedPipeline& pipeline = planner.pipeline();
  const Samples sure = DrawSamples(pipeline, {}, 1, 8, 1);
  const Samples noisy = DrawSamples(pipeline, {.per_computation = 0.2}, 1, 64, 1);
  ClockSwitching switching;
  EXPECT_TRUE(WindowReplay::Suits(pipeline, switching, noisy));
  switching.latency_seconds = 0.95 * ShortestSeconds(pipeline);
  EXPECT_TRUE(WindowReplay::Suits(pipeline, switching, sure));
  EXPECT_FALSE(WindowReplay::Suits(pipeline, switching, noisy));
  switching.call_ahead = CallAhead::kEnd;
  EXPECT_FALSE(WindowReplay::Suits(pipeline, switching, sure));
  switching.call_ahead = CallAhead::kPredicted;
  EXPECT_TRUE(WindowReplay::Suits(pipeline, switching, sure));
  switching.latency_seconds = 1.05 * ShortestSeconds(pipeline);
  EXPECT_FALSE(WindowReplay::Suits(pipeline, switching, sure));
}

}  // namespace
}  // namespace perseus::robust
