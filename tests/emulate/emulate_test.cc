// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "emulate/emulation_testing.h"
#include "model/noise.h"
#include "perseus/emulator.h"
#include "support/mentions.h"

// Every disturbance alone, against figures computed by hand.
namespace perseus {
namespace {

using emulator_testing::Emulated;
using emulator_testing::FakePolicy;
using emulator_testing::IterationTimes;
using emulator_testing::kFast;
using emulator_testing::kSlow;
using emulator_testing::Only;
using emulator_testing::Plans;
using emulator_testing::PlanWith;
using emulator_testing::TinyPipeline;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

EmulationSpec SpecOf(int pipelines, std::int64_t iterations, double target = 6) {
  EmulationSpec spec;
  spec.pipelines = pipelines;
  spec.iterations = iterations;
  spec.target_seconds = target;
  spec.timeline_pipelines = 100;
  return spec;
}

double ComputingJoules(const EmulatedPipeline& pipeline) {
  double joules = 0;
  for (const EmulatedComputation& computation : pipeline.computations) {
    joules += computation.joules;
  }
  return joules;
}

// F0 0-1, F1 1-2, B1 2-4, B0 4-6.
TEST(EmulateTest, UndisturbedJobIsItsPlan) {
  const Planner planner = Plans(TinyPipeline(2));
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), SpecOf(3, 4));
  EXPECT_THAT(IterationTimes(emulation), ElementsAre(6, 6, 6, 6));
  EXPECT_EQ(emulation.iterations[3].start_seconds, 18);
  EXPECT_EQ(emulation.time_seconds, 24);
  EXPECT_EQ(emulation.gpus, 6);
  EXPECT_DOUBLE_EQ(emulation.energy.total_joules(), 4 * 3 * 860);
  EXPECT_DOUBLE_EQ(emulation.energy.blocking_joules, 4 * 3 * 60);
  EXPECT_DOUBLE_EQ(emulation.average_watts, 3 * 860 / 6.0);
  EXPECT_DOUBLE_EQ(emulation.gpu_average_watts, 860 / 12.0);
  EXPECT_DOUBLE_EQ(emulation.gpu_peak_watts, 150);
  EXPECT_NEAR(emulation.peak_watts, 3 * 160, 1e-9);
  EXPECT_EQ(emulation.replayed_pipelines, 1);
  EXPECT_EQ(emulation.clock_calls, 0);
  EXPECT_EQ(emulation.stragglers, 0);
  ASSERT_EQ(emulation.timeline.pipelines.size(), 3);
  EXPECT_EQ(emulation.timeline.pipelines[2].computations[0].joules, 100);
}

TEST(EmulateTest, PowerOverTime) {
  const Planner planner = Plans(TinyPipeline(2));
  EmulationSpec spec = SpecOf(1, 1);
  spec.power_interval_seconds = 2;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
  EXPECT_EQ(emulation.power.interval_seconds, 2);
  EXPECT_THAT(emulation.power.watts, ElementsAre(DoubleEq(110), DoubleEq(160), DoubleEq(160)));
  spec.power_interval_seconds = 4;
  EXPECT_THAT(Emulated(planner, Only(PlanWith(planner, {kFast})), spec).power.watts,
              ElementsAre(DoubleEq(135), DoubleEq(80)));
}

// One rank: F at the high clock, B at the low one.
TEST(EmulateTest, WorkGoesOnAtTheOldClockUntilTheNewOneIsInEffect) {
  const Planner planner = Plans(TinyPipeline(1));
  EmulationSpec spec = SpecOf(2, 2, 5);
  spec.switching.latency_seconds = 1;
  spec.timeline_iteration = 1;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast, kSlow})), spec);
  // F 0-1; B: half in 1-2 at the high clock, half in 2-4 at the low one. Next
  // F: half in 0-1 at the low clock, half in 1-1.5; B 1.5-2.5-4.5.
  EXPECT_THAT(IterationTimes(emulation), ElementsAre(4, 4.5));
  EXPECT_DOUBLE_EQ(emulation.iterations[0].energy.total_joules(), 2 * (100 + 150 + 100));
  EXPECT_DOUBLE_EQ(emulation.iterations[1].energy.total_joules(), 2 * (30 + 50 + 150 + 100));
  EXPECT_EQ(emulation.clock_calls, 2 * 3);
  EXPECT_EQ(emulation.late_computations, 2 * 3);
  EXPECT_EQ(emulation.replayed_pipelines, 2);
  const EmulatedPipeline& pipeline = emulation.timeline.pipelines.at(1);
  EXPECT_EQ(pipeline.computations[0].end_seconds, 1.5);
  EXPECT_EQ(pipeline.computations[1].joules, 250);
  EXPECT_EQ(pipeline.computations[1].knob, kSlow);
  EXPECT_DOUBLE_EQ(emulation.gpu_peak_watts, 150);
}

TEST(EmulateTest, CallInFlightEndsFirst) {
  const Planner planner = Plans(TinyPipeline(1));
  EmulationSpec spec = SpecOf(1, 3, 5);
  spec.switching.latency_seconds = 3.5;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast, kSlow})), spec);
  // 0: F 0-1, B 1-3 at the high clock; the low one is under way until 1.5 of 1.
  // 1: F 0-1, B 1-: a quarter until 1.5, then the low clock, as it is wanted:
  //    3 s more, until 4.5.
  // 2: F asks for the high clock at 0, until 3.5: F 0-2 at the low clock; B asks
  //    for the low one at 2: 2-3.5 (3/8), then high: 5/8 of 2 s, until 4.75.
  EXPECT_THAT(IterationTimes(emulation), ElementsAre(3, 4.5, 4.75));
  EXPECT_EQ(emulation.clock_calls, 1 + 0 + 2);
  EXPECT_EQ(emulation.late_computations, 1 + 1 + 1);
}

TEST(EmulateTest, ClockAskedForAheadIsThereInTime) {
  const Planner planner = Plans(TinyPipeline(2));
  const FakePolicy policy = Only(PlanWith(planner, {kFast, kFast, kFast, kSlow}));
  EmulationSpec spec = SpecOf(1, 2, 8);
  spec.switching.latency_seconds = 1;
  // B0 starts at 4; its rank is idle from 1 on.
  const Emulation late = Emulated(planner, policy, spec);
  EXPECT_EQ(late.iterations[0].time_seconds, 7);
  EXPECT_DOUBLE_EQ(late.iterations[0].energy.total_joules(), 100 + 100 + 300 + 250 + 70);
  EXPECT_EQ(late.iterations[0].straggling_pipelines, 0);
  spec.switching.call_ahead = CallAhead::kEnd;
  const Emulation ahead = Emulated(planner, policy, spec);
  // Of the second iteration, the first clock is asked for when it starts.
  EXPECT_THAT(IterationTimes(ahead), ElementsAre(8, 8.5));
  EXPECT_DOUBLE_EQ(ahead.iterations[0].energy.total_joules(), 700 + 80);
  EXPECT_EQ(ahead.late_computations, 1);
  EXPECT_EQ(ahead.clock_calls, 3);
}

TEST(EmulateTest, SwitchStallsTheRank) {
  const Planner planner = Plans(TinyPipeline(1));
  EmulationSpec spec = SpecOf(1, 2, 7);
  spec.switching.stall_seconds = 0.5;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast, kSlow})), spec);
  EXPECT_THAT(IterationTimes(emulation), ElementsAre(5.5, 6));
  EXPECT_DOUBLE_EQ(emulation.energy.blocking_joules, 10 * 1.5);
  EXPECT_EQ(emulation.clock_calls, 3);
  EXPECT_EQ(emulation.late_computations, 0);
}

TEST(EmulateTest, EachKindOfStraggler) {
  using enum StragglerKind;
  const Planner planner = Plans(TinyPipeline(2));
  struct Case {
    Straggler straggler;
    double seconds;
    double joules;  // Of its computations.
  };
  for (const Case& c : {Case{{.kind = kSlow, .value = 2}, 12, 1600},
                        Case{{.kind = kSlow, .value = 2, .rank = 1}, 9, 1200},
                        Case{{.kind = kClockCap, .value = 600}, 12, 520},
                        Case{{.kind = kClockCap, .value = 600, .rank = 0}, 9, 660},
                        Case{{.kind = kPowerCap, .value = 120}, 10, 600},
                        Case{{.kind = kDataStall, .value = 3}, 9, 800},
                        Case{{.kind = kDataStall, .value = 3, .rank = 1}, 8, 800},
                        Case{{.kind = kDataStall, .value = 0.5, .rank = 1}, 6, 800}}) {
    EmulationSpec spec = SpecOf(2, 4);
    spec.stragglers = {c.straggler};
    spec.stragglers[0].pipeline = 1;
    spec.stragglers[0].first_iteration = 1;
    spec.stragglers[0].iterations = 2;
    const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
    EXPECT_THAT(IterationTimes(emulation), ElementsAre(6, c.seconds, c.seconds, 6));
    EXPECT_EQ(emulation.iterations[0].straggling_pipelines, 0);
    EXPECT_EQ(emulation.iterations[2].straggling_pipelines, 1);
    EXPECT_EQ(emulation.stragglers, 1);
    // The timeline is of the first iteration with a straggler, which comes first.
    EXPECT_EQ(emulation.timeline.iteration, 1);
    EXPECT_EQ(emulation.timeline.time_seconds, c.seconds);
    ASSERT_EQ(emulation.timeline.pipelines.size(), 2);
    EXPECT_EQ(emulation.timeline.pipelines[0].pipeline, 1);
    EXPECT_TRUE(emulation.timeline.pipelines[0].straggles);
    EXPECT_EQ(emulation.timeline.pipelines[0].end_seconds, c.seconds);
    EXPECT_DOUBLE_EQ(ComputingJoules(emulation.timeline.pipelines[0]), c.joules);
    EXPECT_EQ(emulation.timeline.pipelines[1].end_seconds, 6);
    EXPECT_FALSE(emulation.timeline.pipelines[1].straggles);
  }
}

TEST(EmulateTest, EnergyOfAStragglingJob) {
  const Planner planner = Plans(TinyPipeline(2));
  EmulationSpec spec = SpecOf(2, 1);
  spec.stragglers = {{.value = 2, .pipeline = 1}};
  const EnergySplit split = Emulated(planner, Only(PlanWith(planner, {kFast})), spec).energy;
  EXPECT_NEAR(split.useful_joules, 460 + 1600, 1e-9);
  EXPECT_NEAR(split.intrinsic_bloat_joules, 0, 1e-9);
  EXPECT_NEAR(split.extrinsic_bloat_joules, 340, 1e-9);
  EXPECT_NEAR(split.blocking_joules, 180 + 120, 1e-9);
}

TEST(EmulateTest, OthersSlowDownAfterTheDelayAndSpeedUpAgain) {
  const Planner planner = Plans(TinyPipeline(2));
  const FakePolicy policy([&](double seconds) -> Result<Plan> {
    return PlanWith(planner, {seconds < 12 ? kFast : kSlow});
  });
  EmulationSpec spec = SpecOf(2, 8);
  spec.stragglers = {{.value = 2, .first_iteration = 2, .iterations = 3}};
  const auto targets = [](const Emulation& emulation) {
    std::vector<double> result;
    for (const IterationRecord& r : emulation.iterations) result.push_back(r.target_seconds);
    return result;
  };
  const Emulation at_once = Emulated(planner, policy, spec);
  EXPECT_THAT(targets(at_once), ElementsAre(6, 6, 12, 12, 12, 6, 6, 6));
  EXPECT_THAT(IterationTimes(at_once), ElementsAre(6, 6, 12, 12, 12, 6, 6, 6));
  EXPECT_NEAR(at_once.energy.extrinsic_bloat_joules, 0, 1e-9);
  spec.control.delay_seconds = 10;
  const Emulation delayed = Emulated(planner, policy, spec);
  // It comes at 12 s, which is known at 24 s; it goes at 48 s, known at 60 s.
  EXPECT_THAT(targets(delayed), ElementsAre(6, 6, 6, 12, 12, 12, 6, 6));
  EXPECT_THAT(IterationTimes(delayed), ElementsAre(6, 6, 12, 12, 12, 12, 6, 6));
  EXPECT_NEAR(delayed.iterations[2].energy.extrinsic_bloat_joules, 340, 1e-9);
  EXPECT_NEAR(delayed.iterations[3].energy.extrinsic_bloat_joules, 0, 1e-9);
  EXPECT_EQ(delayed.replans, 2);
}

TEST(EmulateTest, NoisePerStageIsTheSameInAllPipelines) {
  const Planner planner = Plans(TinyPipeline(2));
  EmulationSpec spec = SpecOf(3, 5);
  spec.noise.per_stage = 0.1;
  spec.seed = 3;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
  const std::vector<double> stage =
      model::DrawFixedNoise(planner.pipeline(), spec.noise, spec.pipelines, spec.seed).stage;
  EXPECT_NE(stage[0], stage[1]);
  EXPECT_DOUBLE_EQ(emulation.iterations[4].time_seconds, 3 * stage[0] + 3 * stage[1]);
  EXPECT_DOUBLE_EQ(ComputingJoules(emulation.timeline.pipelines[2]), 400 * (stage[0] + stage[1]));
  EXPECT_EQ(emulation.replayed_pipelines, 1);
}

TEST(EmulateTest, NoisePerGpuMakesTheOthersOfARankWait) {
  CostedPipeline pipeline = TinyPipeline(1);
  pipeline.tensor_parallel = 4;
  const Planner planner = Plans(std::move(pipeline));
  EmulationSpec spec = SpecOf(2, 3);
  spec.noise.per_gpu = 0.1;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
  const auto gpus =
      model::DrawFixedNoise(planner.pipeline(), spec.noise, spec.pipelines, spec.seed).gpus_of_rank;
  double blocking = 0;
  const double seconds = 3 * std::max(gpus[0].slowest, gpus[1].slowest);
  for (int p = 0; p < 2; ++p) {
    const EmulatedPipeline& kept = emulation.timeline.pipelines[p];
    EXPECT_DOUBLE_EQ(kept.end_seconds, 3 * gpus[p].slowest);
    EXPECT_DOUBLE_EQ(ComputingJoules(kept), 400 * gpus[p].mean);
    blocking += 10 * (seconds - 3 * gpus[p].mean);
  }
  EXPECT_NEAR(emulation.iterations[1].energy.blocking_joules, blocking, 1e-9);
  EXPECT_EQ(emulation.replayed_pipelines, 2);
  EXPECT_DOUBLE_EQ(
      emulation.gpu_peak_watts,
      150.0 / 4 * std::max(gpus[0].mean / gpus[0].slowest, gpus[1].mean / gpus[1].slowest));
}

TEST(EmulateTest, NoisePerComputationIsDrawnForEach) {
  const Planner planner = Plans(TinyPipeline(1, 2));
  EmulationSpec spec = SpecOf(2, 3);
  spec.noise.per_computation = 0.1;
  spec.seed = 5;
  spec.timeline_iteration = 2;
  const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
  EXPECT_EQ(emulation.replayed_pipelines, 6);
  for (const EmulatedPipeline& kept : emulation.timeline.pipelines) {
    for (const EmulatedComputation& c : kept.computations) {
      const double z =
          WordHash(5).With(1).With(kept.pipeline).With(2).With(c.computation).StandardDraw();
      const CostOption& option = planner.baseline().options[c.computation];
      EXPECT_DOUBLE_EQ(c.end_seconds - c.start_seconds, option.time_seconds * (1 + 0.1 * z));
      EXPECT_DOUBLE_EQ(c.joules, option.energy_joules * (1 + 0.1 * z));
    }
  }
}

TEST(EmulateTest, WithoutPowerOverTimeAllElseIsTheSame) {
  const Planner planner = Plans(TinyPipeline(1, 2));
  const FakePolicy policy = Only(PlanWith(planner, {kFast}));
  EmulationSpec spec = SpecOf(2, 3);
  spec.noise.per_computation = 0.1;
  const Emulation with = Emulated(planner, policy, spec);
  ASSERT_FALSE(with.power.watts.empty());
  spec.power_over_time = false;
  const Emulation without = Emulated(planner, policy, spec);
  EXPECT_TRUE(without.power.watts.empty());
  EXPECT_EQ(without.time_seconds, with.time_seconds);
  EXPECT_EQ(without.energy.total_joules(), with.energy.total_joules());
  EXPECT_EQ(without.gpu_peak_watts, with.gpu_peak_watts);
  EXPECT_EQ(without.peak_watts, without.average_watts);
}

TEST(EmulateTest, RefusesWhatCannotBeEmulated) {
  const Planner planner = Plans(TinyPipeline(1));
  const FakePolicy policy = Only(PlanWith(planner, {kFast}));
  EmulationSpec spec = SpecOf(1, 2, 3);
  for (int i = 0; i < 120; ++i) spec.stragglers.push_back({.value = 1000, .first_iteration = 1});
  const auto too_slow = Emulate(planner, policy, spec);
  ASSERT_FALSE(too_slow);
  EXPECT_THAT(too_slow.error().message, Mentions("iteration", "1"));
  spec.stragglers = {{.value = 1000}};
  spec.power_interval_seconds = 1e-4;
  const auto too_long = Emulate(planner, policy, spec);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message, Mentions("10000000"));
  spec.noise.per_gpu = 1;
  EXPECT_EQ(Emulate(planner, policy, spec).error().code, ErrorCode::kInvalidInput);
}

// Computations of a nanosecond and of years, with and without energy.
TEST(EmulateTest, NumbersAtTheEnds) {
  for (const double scale : {1e-12, 1.0, 1e8}) {
    for (const double joules : {0.0, 1.0}) {
      CostedPipeline pipeline = TinyPipeline(2);
      for (CostTable& table : pipeline.tables) {
        const auto change = [&](CostOption* option) {
          option->time_seconds *= scale;
          option->energy_joules *= joules;
        };
        for (CostOption& option : table.options) change(&option);
        for (CostOption& option : table.all_options) change(&option);
        change(&table.baseline);
        table.blocking_power_watts *= joules;
      }
      for (double& watts : pipeline.rank_blocking_power_watts) watts *= joules;
      pipeline.total_blocking_power_watts *= joules;
      const Planner planner = Plans(std::move(pipeline));
      EmulationSpec spec = SpecOf(2, 50, 6 * scale);
      spec.stragglers = {{.value = 2, .pipeline = 1, .first_iteration = 25}};
      const Emulation emulation = Emulated(planner, Only(PlanWith(planner, {kFast})), spec);
      const double seconds = (25 * 6 + 25 * 12) * scale;
      EXPECT_NEAR(emulation.time_seconds / seconds, 1, 1e-12);
      const PowerTrace& power = emulation.power;
      EXPECT_EQ(power.watts.size(), std::ceil((1 - 1e-12) * seconds / power.interval_seconds));
      double drawn = 0;
      for (const double watts : power.watts) drawn += watts * power.interval_seconds;
      const double total = emulation.energy.total_joules();
      EXPECT_NEAR(drawn, total, 1e-9 * total);
      EXPECT_GE(total, joules * (25 * 1600 + 25 * 2400));
    }
  }
}

TEST(EmulateTest, SaysHowFarItIs) {
  const Planner planner = Plans(TinyPipeline(1));
  std::vector<double> shares;
  ASSERT_TRUE(Emulate(planner, Only(PlanWith(planner, {kFast})), SpecOf(1, 1000, 3),
                      [&](const Progress& now) {
                        shares.push_back(now.share);
                        return true;
                      }));
  EXPECT_EQ(shares.size(), 100);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  const auto stopped = Emulate(planner, Only(PlanWith(planner, {kFast})), SpecOf(1, 1000, 3),
                               [](const Progress&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace perseus
