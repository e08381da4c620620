// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/nvml/nvml.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

std::string Fault(const std::string& text) {
  const Result<SimulatedConfig> config = ParseSimulatedConfig(text, "gpus.toml", "test");
  if (config) return "";
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidInput);
  return config.error().message;
}

TEST(SimulatedConfigTest, EverythingHasADefault) {
  const Result<SimulatedConfig> config =
      ParseSimulatedConfig("[[gpus]]\ncount = 3\n", "gpus.toml", "test");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  ASSERT_EQ(config->gpus.size(), 3);
  EXPECT_EQ(config->time_scale, 1);
  const SimulatedGpuConfig& gpu = config->gpus[2];
  EXPECT_STREQ(gpu.uuid.data(), "GPU-sim-test-0002");
  EXPECT_EQ(gpu.model.clock_count, 81);
  EXPECT_EQ(gpu.model.clocks_mhz[0], 210);
  EXPECT_EQ(gpu.model.clocks_mhz[80], 1410);
  EXPECT_EQ(gpu.model.busy_watts[80], 380);
  EXPECT_LT(gpu.model.busy_watts[79], 380);
  EXPECT_GT(gpu.model.busy_watts[0], gpu.model.idle_watts);
  EXPECT_EQ(gpu.errors[0].every, 0);
  EXPECT_TRUE(std::isnan(gpu.power_floor_watts));
}

TEST(SimulatedConfigTest, TheHighestClockIsAlwaysThere) {
  const Result<SimulatedConfig> config = ParseSimulatedConfig(
      "[[gpus]]\nmin_clock_mhz = 500\nmax_clock_mhz = 1001\nclock_step_mhz = 100\n", "x", "test");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->gpus[0].model.clock_count, 6);
  EXPECT_EQ(config->gpus[0].model.clocks_mhz[0], 501);
  EXPECT_EQ(config->gpus[0].model.clocks_mhz[5], 1001);
}

TEST(SimulatedConfigTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Fault(""), Mentions("gpus"));
  EXPECT_THAT(Fault("gpus = []"), Mentions("1", "256"));
  EXPECT_THAT(Fault("[[gpus]]\ncoutn = 2"), Mentions("count"));
  EXPECT_THAT(Fault("[[gpus]]\ncount = 257"), Mentions("gpus.toml:2:"));
  EXPECT_THAT(Fault("[[gpus]]\nuuid = 'a'\n[[gpus]]\nuuid = 'a'"), Mentions("before"));
  EXPECT_THAT(Fault("[[gpus]]\nuuid = 'a'\ncount = 2"), Mentions("names"));
  EXPECT_THAT(Fault("[[gpus]]\nname = ''"), Mentions("1", "95"));
  EXPECT_THAT(Fault("[[gpus]]\nname = 'caf\u00e9'"), Mentions("1", "95"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = []"), Mentions("1", "256"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = [2, 1]"), Mentions("above"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = [1, 2.5]"), Mentions("clocks_mhz[1]"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = [1, 2]\nmin_clock_mhz = 1"), Mentions("many"));
  EXPECT_THAT(Fault("[[gpus]]\nclock_step_mhz = 1"), Mentions("clock_step_mhz"));
  EXPECT_THAT(Fault("[[gpus]]\nclock_step_mhz = 0"), Mentions("clock_step_mhz"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = [1, 2]\nbusy_watts = [1]"),
              Mentions("1", "numbers", "2", "clocks"));
  EXPECT_THAT(Fault("[[gpus]]\nidle_watts = nan"), Mentions("idle_watts"));
  EXPECT_THAT(Fault("[[gpus]]\npower_profiles = ['FAST']"), Mentions("LLM_TRAINING"));
  EXPECT_THAT(Fault("[[gpus]]\nerrors = [{call = 'x', every = 1, code = 'unknown'}]"),
              Mentions("set_clock", "reset_clock"));
  EXPECT_THAT(Fault("[[gpus]]\nerrors = [{call = 'power', every = 1, code = 'x'}]"),
              Mentions("gpu_is_lost"));
  EXPECT_THAT(Fault("[[gpus]]\nerrors = [{call = 'power', every = 0, code = 'unknown'}]"),
              Mentions("every"));
  EXPECT_THAT(Fault("time_scale = 0\n[[gpus]]"), Mentions("time_scale"));
  EXPECT_THAT(Fault("[[gpus]]\nclocks_mhz = [1, 2]\nsettle_ms = [1]"),
              Mentions("1", "numbers", "2", "clocks"));
  EXPECT_THAT(Fault("[[gpus]]\nsettle_ms = 10\nsettle_spread_ms = 3"),
              Mentions("settle_spread_ms", "3.47", "2.88"));
  EXPECT_THAT(Fault("[[gpus]]\nsettle_ms = [1, -1]\nclocks_mhz = [1, 2]"),
              Mentions("settle_ms[1]"));
  EXPECT_THAT(Fault("[[gpus]]\ncounter_lag_ms = 1300"), Mentions("counter_lag_ms", "62"));
  EXPECT_THAT(Fault("[[gpus]]\ncounter_duty = 0"), Mentions("counter_duty"));
  EXPECT_THAT(Fault("[[gpus]]\ncounter_duty = 1.5"), Mentions("counter_duty"));
  EXPECT_THAT(Fault("[[gpus]]\ncounter_duty = 0.5\ncounter_period_ms = 0"),
              Mentions("counter_period_ms"));
  EXPECT_THAT(Fault("serial_calls = 1\n[[gpus]]"), Mentions("serial_calls"));
}

TEST(SimulatedConfigTest, LatenciesAreForAllClocksOrForEach) {
  const auto config = ParseSimulatedConfig(
      "serial_calls = true\n[[gpus]]\nclocks_mhz = [1000, 1200]\nsettle_ms = [40, 20]\n"
      "settle_spread_ms = 2\nseed = 7\ncall_stall_ms = 0.5\n"
      "counter_lag_ms = 100\ncounter_duty = 0.25\ncount = 2\n[[gpus]]\nsettle_ms = 3\n",
      "x", "test");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_TRUE(config->serial_calls);
  const ModelGpu& gpu = config->gpus[0].model;
  EXPECT_EQ(gpu.settle_seconds[0], 0.040);
  EXPECT_EQ(gpu.settle_seconds[1], 0.020);
  EXPECT_EQ(gpu.settle_spread_seconds, 0.002);
  EXPECT_EQ(gpu.call_stall_seconds, 0.0005);
  EXPECT_EQ(gpu.counter_lag_seconds, 0.1);
  EXPECT_EQ(gpu.counter_duty, 0.25);
  EXPECT_NE(gpu.seed, config->gpus[1].model.seed);
  EXPECT_EQ(config->gpus[2].model.settle_seconds[80], 0.003);
  EXPECT_EQ(config->gpus[2].model.counter_duty, 1);
}

TEST(NvmlNamesTest, ErrorsAreSentences) {
  for (const std::string& name : NvmlErrorNames()) {
    const auto code = NvmlErrorByName(name);
    ASSERT_TRUE(code.has_value());
    const Error error = NvmlError(*code, "reading the clock of GPU 3");
    EXPECT_THAT(error.message, Mentions("GPU", "3"));
    EXPECT_EQ(error.code, *code == nvml::kNoPermission ? ErrorCode::kDenied : ErrorCode::kIo);
  }
  EXPECT_THAT(NvmlError(777, "a call").message, Mentions("777"));
  EXPECT_EQ(PowerProfileName(7), "LLM_TRAINING");
  EXPECT_EQ(PowerProfileByName("TRAINING"), 20U);
  EXPECT_EQ(PowerProfileName(200), "profile 200");
}

// Clocks 1000, 1200, 1400 MHz; 10 ms calls, 5 ms to settle; counter at 20 ms.
ModelGpu ThreeClocks() {
  ModelGpu gpu;
  gpu.clock_count = 3;
  for (int i = 0; i < 3; ++i) gpu.clocks_mhz[static_cast<std::size_t>(i)] = 1000 + 200 * i;
  gpu.idle_watts = 50;
  gpu.call_seconds = 0.010;
  gpu.settle_seconds.fill(0.005);
  gpu.counter_period_seconds = 0.020;
  return gpu;
}

ModelKernel KernelOf(std::vector<double> seconds, std::vector<double> joules) {
  ModelKernel kernel;
  std::copy(seconds.begin(), seconds.end(), kernel.seconds.begin());
  std::copy(joules.begin(), joules.end(), kernel.joules.begin());
  return kernel;
}

const FinishedKernel& Last(const ModelState& state) {
  return state.finished[state.kernel_id % kKeptKernels];
}

TEST(SimulatedModelTest, ClockIsInEffectAfterCallAndSettleAndNotBefore) {
  const ModelGpu gpu = ThreeClocks();
  ModelState state;
  state.clock = 2;
  AdvanceModel(gpu, {}, 1.0, &state);
  EXPECT_DOUBLE_EQ(RequestClock(gpu, 0, &state), 1.010);
  AdvanceModel(gpu, {}, 1.0149, &state);
  EXPECT_EQ(state.clock, 2);
  AdvanceModel(gpu, {}, 1.0151, &state);
  EXPECT_EQ(state.clock, 0);
}

TEST(SimulatedModelTest, CallsOfOneGpuWaitForEachOther) {
  const ModelGpu gpu = ThreeClocks();
  ModelState state;
  EXPECT_DOUBLE_EQ(RequestClock(gpu, 0, &state), 0.010);
  EXPECT_DOUBLE_EQ(RequestClock(gpu, 1, &state), 0.020);
  AdvanceModel(gpu, {}, 0.016, &state);
  EXPECT_EQ(state.clock, 0);
  EXPECT_EQ(state.locked, 1);
  AdvanceModel(gpu, {}, 0.026, &state);
  EXPECT_EQ(state.clock, 1);
}

TEST(SimulatedModelTest, ReleaseGivesTheHighestClockBack) {
  const ModelGpu gpu = ThreeClocks();
  ModelState state;
  RequestClock(gpu, 0, &state);
  AdvanceModel(gpu, {}, 1, &state);
  RequestClock(gpu, -1, &state);
  EXPECT_EQ(state.locked, -1);
  AdvanceModel(gpu, {}, 2, &state);
  EXPECT_EQ(state.clock, 2);
}

TEST(SimulatedModelTest, MoreRequestsThanFitKeepTheNewest) {
  ModelGpu gpu = ThreeClocks();
  gpu.call_seconds = 0;
  gpu.settle_seconds.fill(1);
  ModelState state;
  for (int i = 0; i < 100; ++i) RequestClock(gpu, i % 2, &state);
  RequestClock(gpu, 2, &state);
  AdvanceModel(gpu, {}, 2, &state);
  EXPECT_EQ(state.clock, 2);
  EXPECT_EQ(state.pending_count, 0);
}

TEST(SimulatedModelTest, AChangeInTheMiddleGivesTheTwoShares) {
  const ModelGpu gpu = ThreeClocks();
  const ModelKernel kernel = KernelOf({0.4, 0.3, 0.2}, {20, 24, 30});
  ModelState state;
  state.clock = 0;
  BeginModelKernel(0, &state);
  AdvanceModel(gpu, kernel, 0.085, &state);
  RequestClock(gpu, 2, &state);  // In effect at 0.1: a quarter is done.
  EXPECT_NEAR(KernelEndSeconds(gpu, kernel, state), 0.1 + 0.75 * 0.2, 1e-12);
  AdvanceModel(gpu, kernel, 1, &state);
  EXPECT_EQ(state.busy, 0);
  EXPECT_NEAR(Last(state).end_seconds, 0.25, 1e-12);
  EXPECT_NEAR(Last(state).joules, 0.25 * 20 + 0.75 * 30, 1e-9);
  EXPECT_NEAR(state.joules, Last(state).joules + 0.75 * 50, 1e-9);
}

TEST(SimulatedModelTest, ASlowGpuTakesLongerForTheSameJoules) {
  const ModelGpu gpu = ThreeClocks();
  const ModelKernel kernel = KernelOf({0.4, 0.3, 0.2}, {20, 24, 30});
  ModelState state;
  state.slowdown = 1.5;
  BeginModelKernel(0, &state);
  AdvanceModel(gpu, kernel, 10, &state);
  EXPECT_NEAR(Last(state).end_seconds, 0.6, 1e-12);
  EXPECT_NEAR(Last(state).joules, 20, 1e-9);
}

TEST(SimulatedModelTest, EachClockHasItsLatency) {
  ModelGpu gpu = ThreeClocks();
  gpu.settle_seconds[0] = 0.100;
  ModelState state;
  state.clock = 2;
  RequestClock(gpu, 0, &state);  // In effect at 0.110.
  AdvanceModel(gpu, {}, 0.109, &state);
  EXPECT_EQ(state.clock, 2);
  AdvanceModel(gpu, {}, 0.111, &state);
  EXPECT_EQ(state.clock, 0);
  // A slow clock that a newer call overtakes never comes.
  RequestClock(gpu, 2, &state);
  AdvanceModel(gpu, {}, 1, &state);
  RequestClock(gpu, 0, &state);  // At 1.110, ...
  RequestClock(gpu, 1, &state);  // ... and this at 1.025.
  AdvanceModel(gpu, {}, 1.026, &state);
  EXPECT_EQ(state.clock, 1);
  AdvanceModel(gpu, {}, 2, &state);
  EXPECT_EQ(state.clock, 1);
}

TEST(SimulatedModelTest, LatenciesSpreadAsTheyShouldAndDifferBySeed) {
  ModelGpu gpu = ThreeClocks();
  gpu.settle_seconds.fill(0.050);
  gpu.settle_spread_seconds = 0.010;
  const auto latencies = [&](std::uint64_t seed) {
    gpu.seed = seed;
    std::vector<double> all;
    ModelState state;
    for (int i = 0; i < 1000; ++i) {
      AdvanceModel(gpu, {}, i, &state);
      const double end = RequestClock(gpu, i % 2, &state);
      all.push_back(state.pending[0].at_seconds - end);
    }
    return all;
  };
  const std::vector<double> one = latencies(1);
  double sum = 0;
  double squares = 0;
  for (const double each : one) {
    sum += each;
    squares += each * each;
  }
  const double mean = sum / 1000;
  EXPECT_NEAR(mean, 0.050, 0.001);
  EXPECT_NEAR(std::sqrt(squares / 1000 - mean * mean), 0.010, 0.0007);
  EXPECT_EQ(latencies(1), one);
  EXPECT_NE(latencies(2), one);
}

TEST(SimulatedModelTest, ACallStopsTheRunningKernel) {
  ModelGpu gpu = ThreeClocks();
  gpu.call_stall_seconds = 0.003;
  const ModelKernel kernel = KernelOf({0.1, 0.1, 0.1}, {30, 30, 30});
  ModelState state;
  state.clock = 2;
  BeginModelKernel(0, &state);
  AdvanceModel(gpu, kernel, 0.05, &state);
  RequestClock(gpu, 2, &state);
  RequestClock(gpu, 2, &state);
  const double end = KernelEndSeconds(gpu, kernel, state);
  EXPECT_NEAR(end, 0.106, 1e-12);
  AdvanceModel(gpu, kernel, 1, &state);
  EXPECT_NEAR(Last(state).end_seconds, end, 1e-12);
  EXPECT_NEAR(Last(state).joules, 300 * end, 1e-9);  // It draws its power meanwhile.
}

TEST(SimulatedModelTest, TheCounterShowsTheEnergyOfALagAgo) {
  ModelGpu gpu = ThreeClocks();
  gpu.counter_lag_seconds = 0.250;
  const ModelKernel kernel = KernelOf({1, 1, 1}, {350, 350, 350});
  ModelState state;
  AdvanceModel(gpu, kernel, 1, &state);
  BeginModelKernel(0, &state);
  // Steps are at multiples of 20 ms.
  for (const double now : {1.005, 1.105, 1.255, 1.505, 1.905, 2.605, 9.005}) {
    AdvanceModel(gpu, kernel, now, &state);
    const double then = std::floor(now / 0.020 + 1e-9) * 0.020 - 0.250;
    EXPECT_NEAR(state.counter_joules, 50 * then + 300 * std::clamp(then - 1, 0.0, 1.0), 1e-6)
        << now;
  }
}

TEST(SimulatedModelTest, TheCounterSeesOnlyWhileItLooks) {
  ModelGpu gpu = ThreeClocks();
  gpu.idle_watts = 0;
  gpu.counter_period_seconds = 0.100;
  gpu.counter_duty = 0.25;  // The last 25 ms of each 100.
  const ModelKernel kernel = KernelOf({0.020, 0.020, 0.020}, {6, 6, 6});
  const auto seen = [&](double begin) {
    ModelState state;
    AdvanceModel(gpu, kernel, begin, &state);
    BeginModelKernel(0, &state);
    AdvanceModel(gpu, kernel, 2, &state);
    EXPECT_NEAR(state.joules, 6, 1e-9);
    return state.counter_joules;
  };
  EXPECT_NEAR(seen(1.000), 0, 1e-9);
  EXPECT_NEAR(seen(1.065), 12, 1e-9);  // Half of it.
  EXPECT_NEAR(seen(1.078), 24, 1e-9);
  // What lasts is counted rightly.
  gpu.idle_watts = 80;
  ModelState state;
  AdvanceModel(gpu, kernel, 50, &state);
  EXPECT_NEAR(state.counter_joules, 4000, 1e-6);
}

// A run drawn by chance: at each time one thing happens.
struct Step {
  double after_seconds = 0;
  int what = 0;  // 0-2: that clock; 3: release; 4: a kernel; 5: only a look.
};

struct Script {
  ModelGpu gpu;
  ModelKernel kernel;
  std::vector<Step> steps;
};

// `has_effects`: of calls on work, of chance on latencies, and of a counter that is not ideal.
Script DrawScript(bool has_effects = false) {
  Script script;
  script.gpu = ThreeClocks();
  script.gpu.call_seconds = *rc::gen::inRange(0, 30) * 1e-3;
  script.gpu.settle_seconds.fill(*rc::gen::inRange(0, 60) * 1e-3);
  script.gpu.counter_period_seconds = *rc::gen::element(0.0, 0.001, 0.020, 0.1);
  if (has_effects) {
    script.gpu.settle_seconds[1] *= 2;
    script.gpu.settle_spread_seconds = script.gpu.settle_seconds[0] / 4;
    script.gpu.seed = *rc::gen::arbitrary<std::uint64_t>();
    script.gpu.call_stall_seconds = *rc::gen::inRange(0, 20) * 1e-3;
    script.gpu.counter_lag_seconds =
        script.gpu.counter_period_seconds * *rc::gen::inRange(0, 6'200) * 1e-2;
    script.gpu.counter_duty =
        script.gpu.counter_period_seconds > 0 ? *rc::gen::inRange(1, 101) * 1e-2 : 1;
  }
  std::vector<double> seconds;
  std::vector<double> joules;
  for (int i = 0; i < 3; ++i) {
    seconds.push_back(*rc::gen::inRange(1, 500) * 1e-3);
    joules.push_back(*rc::gen::inRange(0, 300) * seconds.back());
  }
  script.kernel = KernelOf(seconds, joules);
  const auto raw = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 100'000), rc::gen::inRange(0, 6)));
  for (const auto& [microseconds, what] : raw) script.steps.push_back({microseconds * 1e-6, what});
  return script;
}

// Plays the script; `look` is called with each state on the way, and may advance it.
template <typename Look>
ModelState Play(const Script& script, const Look& look) {
  ModelState state;
  double now = 0;
  for (const Step& step : script.steps) {
    look(now, now + step.after_seconds, &state);
    now += step.after_seconds;
    AdvanceModel(script.gpu, script.kernel, now, &state);
    if (step.what < 4) RequestClock(script.gpu, step.what == 3 ? -1 : step.what, &state);
    if (step.what == 4 && state.busy == 0) BeginModelKernel(0, &state);
  }
  look(now, now + 1, &state);
  AdvanceModel(script.gpu, script.kernel, now + 1, &state);
  return state;
}

RC_GTEST_PROP(SimulatedModelProperty, AnyPartitionOfTimeGivesTheSame, ()) {
  const Script script = DrawScript(true);
  const ModelState plain = Play(script, [](double, double, ModelState*) {});
  const int pieces = *rc::gen::inRange(2, 50);
  const ModelState cut = Play(script, [&](double from, double to, ModelState* state) {
    for (int i = 1; i < pieces; ++i) {
      AdvanceModel(script.gpu, script.kernel, from + (to - from) * i / pieces, state);
    }
  });
  RC_ASSERT(plain.clock == cut.clock);
  RC_ASSERT(plain.busy == cut.busy);
  RC_ASSERT(plain.kernel_id == cut.kernel_id);
  RC_ASSERT(std::abs(plain.joules - cut.joules) <= 1e-9 * (1 + plain.joules));
  RC_ASSERT(std::abs(plain.counter_joules - cut.counter_joules) <=
            1e-9 * (1 + plain.joules) / script.gpu.counter_duty);
  RC_ASSERT(std::abs(plain.kernel_progress - cut.kernel_progress) <= 1e-9);
}

RC_GTEST_PROP(SimulatedModelProperty, EnergyIsTheIntegralOfPower, ()) {
  const Script script = DrawScript(true);
  Play(script, [&](double from, double to, ModelState* state) {
    const int pieces = 40;
    for (int i = 1; i <= pieces; ++i) {
      const double before = ModelWatts(script.gpu, script.kernel, *state);
      const double joules = state->joules;
      const double seconds = state->at_seconds;
      const auto kernels = state->kernel_id;
      const int busy = state->busy;
      const int clock = state->clock;
      const int pending = state->pending_count;
      AdvanceModel(script.gpu, script.kernel, from + (to - from) * i / pieces, state);
      const double passed = state->at_seconds - seconds;
      const double gained = state->joules - joules;
      RC_ASSERT(gained >= 0);
      const bool same = state->busy == busy && state->kernel_id == kernels &&
                        state->clock == clock && state->pending_count == pending;
      if (same) RC_ASSERT(std::abs(gained - before * passed) <= 1e-9 * (1 + state->joules));
      // Whatever happened in between.
      double most = script.gpu.idle_watts;
      for (std::size_t c = 0; c < 3; ++c) {
        most = std::max(most, script.kernel.joules[c] / script.kernel.seconds[c]);
      }
      RC_ASSERT(gained <= most * passed + 1e-9 * (1 + state->joules));
    }
  });
}

RC_GTEST_PROP(SimulatedModelProperty, TheCounterShowsItsLastStep, ()) {
  const Script script = DrawScript();
  Play(script, [&](double from, double to, ModelState* state) {
    for (int i = 1; i <= 7; ++i) {
      const double now = from + (to - from) * i / 7;
      ModelState then = *state;
      AdvanceModel(script.gpu, script.kernel, now, state);
      const double period = script.gpu.counter_period_seconds;
      if (period == 0) {
        RC_ASSERT(state->counter_joules == state->joules);
        continue;
      }
      double steps = std::floor(now / period);
      // The quotient may be rounded.
      if (steps * period > now) --steps;
      if ((steps + 1) * period <= now) ++steps;
      const double step = steps * period;
      if (step <= then.at_seconds) {
        RC_ASSERT(state->counter_joules == then.counter_joules);
      } else {
        AdvanceModel(script.gpu, script.kernel, step, &then);
        RC_ASSERT(std::abs(state->counter_joules - then.joules) <= 1e-9 * (1 + then.joules));
      }
    }
  });
}

RC_GTEST_PROP(SimulatedModelProperty, AKernelAtAFixedClockTakesItsTablesTimeAndJoules, ()) {
  const Script script = DrawScript();
  const auto clock = static_cast<std::size_t>(*rc::gen::inRange(0, 3));
  ModelState state;
  state.clock = static_cast<int>(clock);
  AdvanceModel(script.gpu, script.kernel, *rc::gen::inRange(0, 1'000'000) * 1e-3, &state);
  const double begin = state.at_seconds;
  BeginModelKernel(0, &state);
  const double end = KernelEndSeconds(script.gpu, script.kernel, state);
  for (int looks = *rc::gen::inRange(0, 20); looks > 0; --looks) {
    AdvanceModel(script.gpu, script.kernel, begin + (end - begin) / (looks + 1), &state);
    RC_ASSERT(state.busy == 1);
  }
  AdvanceModel(script.gpu, script.kernel, end + 1, &state);
  RC_ASSERT(state.busy == 0);
  RC_ASSERT(std::abs(Last(state).end_seconds - end) <= 1e-9 * (1 + end));
  RC_ASSERT(std::abs(end - begin - script.kernel.seconds[clock]) <= 1e-9 * (1 + end));
  RC_ASSERT(std::abs(Last(state).joules - script.kernel.joules[clock]) <=
            1e-9 * (1 + state.joules));
}

RC_GTEST_PROP(SimulatedModelProperty, TheForecastOfAKernelsEndIsRight, ()) {
  const Script script = DrawScript(true);
  ModelState state = Play(script, [](double, double, ModelState*) {});
  AdvanceModel(script.gpu, script.kernel, state.at_seconds + 10, &state);
  BeginModelKernel(0, &state);
  RequestClock(script.gpu, *rc::gen::inRange(-1, 3), &state);
  RequestClock(script.gpu, *rc::gen::inRange(-1, 3), &state);
  const double end = KernelEndSeconds(script.gpu, script.kernel, state);
  AdvanceModel(script.gpu, script.kernel, end + 1, &state);
  RC_ASSERT(std::abs(Last(state).end_seconds - end) <= 1e-9 * (1 + end));
}

}  // namespace
}  // namespace perseus::device
