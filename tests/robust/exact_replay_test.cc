// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>

#include "emulate/emulation_testing.h"
#include "robust/robust_testing.h"
#include "robust/trials.h"

namespace perseus::robust {
namespace {

using robust_testing::OptionsAt;
using robust_testing::RandomKnobs;
using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

// The search's verdicts are those of the emulator, iteration by iteration.
RC_GTEST_PROP(ExactReplayProperty, IsTheEmulator, ()) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const bool waits = random() % 2 == 0;
  const Planner planner = RandomPlanner(random, 2 + static_cast<int>(random() % 3),
                                        2 + static_cast<int>(random() % 5), 4, waits);
  const Waiting waiting = random() % 2 == 0 ? Waiting::kCheapest : Waiting::kSetClock;
  const CostedPipeline& pipeline = planner.pipeline();
  const auto options = OptionsAt(pipeline, RandomKnobs(random, pipeline));
  const auto share = [&] { return static_cast<double>(random() % 1000) / 1000; };
  Conditions conditions;
  if (random() % 2 == 0) conditions.noise.per_computation = 0.1 * share();
  if (random() % 3 == 0) conditions.noise.per_stage = 0.1 * share();
  if (random() % 3 == 0) conditions.noise.per_gpu = 0.1 * share();
  if (random() % 3 == 0) conditions.noise.per_rank = 0.1 * share();
  if (random() % 2 == 0) conditions.noise.correlation = 0.99 * share();
  if (random() % 3 == 0) {
    conditions.noise.rare_length = 0.2 * share();
    conditions.noise.rare_share = 0.2 * share();
  }
  conditions.switching.call_ahead = static_cast<CallAhead>(random() % 3);
  if (random() % 4 != 0) {
    conditions.switching.latency_seconds = 2 * share() * ShortestSeconds(pipeline);
    if (random() % 2 == 0) {
      conditions.switching.latency_spread_seconds =
          0.2 * share() * conditions.switching.latency_seconds;
    }
    for (const Knob& knob : pipeline.knobs) {
      if (conditions.switching.latency_seconds == 0 || random() % 2 == 0) continue;
      conditions.switching.latency_at.push_back(
          {knob.number, 3 * share() * conditions.switching.latency_seconds});
    }
  }
  if (random() % 4 == 0) {
    conditions.switching.stall_seconds = 0.2 * share() * ShortestSeconds(pipeline);
  }
  const int pipelines = 1 + static_cast<int>(random() % 3);
  const std::uint64_t seed = random();

  EmulationSpec spec;
  spec.pipelines = pipelines;
  spec.iterations = 4;
  spec.target_seconds = planner.baseline().iteration_time_seconds;
  spec.noise = conditions.noise;
  spec.switching = conditions.switching;
  spec.seed = seed;
  const auto emulation = emulator_testing::Emulated(
      planner, emulator_testing::Only(*planner.Evaluate(options, waiting)), spec);
  const ReplayedRun run = ReplayJob(pipeline, options, waiting, conditions, pipelines, 4, seed);
  double calls = 0;
  for (std::size_t n = 0; n < emulation.iterations.size(); ++n) {
    const IterationRecord& record = emulation.iterations[n];
    RC_ASSERT(run.seconds[n] == record.time_seconds);
    const double joules = record.energy.total_joules() / pipelines;
    RC_ASSERT(std::abs(run.joules[n] - joules) <= 1e-11 * joules);
  }
  calls = run.clock_calls * 4 * pipelines;
  RC_ASSERT(std::abs(calls - static_cast<double>(emulation.clock_calls)) < 1e-6);
}

}  // namespace
}  // namespace perseus::robust
