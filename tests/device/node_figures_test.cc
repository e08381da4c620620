// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What probes measure on simulated GPUs is what these were told, within the errors that the probes
// state. Twenty seeds: each figure holds for at least seventeen, at three of its standard errors.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_directory.h"
#include "device/device.h"
#include "device/disturbance_probe.h"
#include "device/effect_probe.h"
#include "device/figure.h"
#include "device/simulated/simulated_gpu.h"
#include "device/simulated/simulated_kernel.h"
#include "device/simulated/simulated_model.h"
#include "device/step_probe.h"
#include "device/together_probe.h"

namespace perseus::device {
namespace {

constexpr int kSeeds = 20;
constexpr int kLeastHeld = 17;
constexpr int kAtOnce = 5;
constexpr double kErrors = 3;
const auto kRunsOn = [] { return false; };

// What a simulated GPU was told.
struct Truth {
  double call = 0;
  std::vector<double> settle;  // Of clocks 900, 1000, 1100, 1200, 1300.
  double spread = 0;
  double stall = 0;
  double transfer_stall = 0;
};

Truth DrawTruth(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> share(0, 1);
  Truth truth;
  truth.call = 0.002 + 0.010 * share(random);
  for (int clock = 0; clock < 5; ++clock) truth.settle.push_back(0.010 + 0.020 * share(random));
  truth.spread = 0.001 + 0.001 * share(random);
  truth.stall = 0.002 * share(random);
  truth.transfer_stall = 0.004 * share(random);
  return truth;
}

std::string ConfigOf(const Truth& truth, int seed) {
  std::string settle;
  for (const double seconds : truth.settle) settle += fmt::format("{}, ", 1e3 * seconds);
  return fmt::format(
      "[[gpus]]\nclocks_mhz = [900, 1000, 1100, 1200, 1300]\ncall_ms = {}\nsettle_ms = [{}]\n"
      "settle_spread_ms = {}\nseed = {}\ncall_stall_ms = {}\ntransfer_stall_ms = {}\n",
      1e3 * truth.call, settle, 1e3 * truth.spread, seed, 1e3 * truth.stall,
      1e3 * truth.transfer_stall);
}

// How often each figure was within its error.
class Tally {
 public:
  void Check(const std::string& what, const Figure& figure, double truth) {
    Check(what, figure.value, truth, figure.error);
  }
  void Check(const std::string& what, double value, double truth, double error) {
    ++checked_[what];
    if (std::abs(value - truth) <= kErrors * error) {
      ++held_[what];
    } else {
      said_[what] += fmt::format("{} +- {} is not {}; ", value, error, truth);
    }
  }
  void Expect() const {
    for (const auto& [what, checked] : checked_) {
      const auto held = held_.find(what);
      EXPECT_GE(held == held_.end() ? 0 : held->second, checked * kLeastHeld / kSeeds)
          << what << ": " << said_.at(what);
    }
  }

 private:
  std::map<std::string, int> checked_;
  std::map<std::string, int> held_;
  std::map<std::string, std::string> said_;
};

struct Measured {
  EffectProbe effect;
  DisturbanceProbe computation;
  DisturbanceProbe transfer;
};

Result<Measured> Measure(SimulatedGpus* gpus, Gpu& gpu, int index) {
  const auto kernel = MakeSimulatedKernel(gpus, index, SimulatedWork::kCompute);
  const auto transfer = MakeSimulatedKernel(gpus, index, SimulatedWork::kTransfer);
  const auto effect = ProbeEffect(gpu, *kernel, 24, kRunsOn);
  if (!effect) return tl::unexpected(effect.error());
  const auto computed = ProbeDisturbance(gpu, *kernel, 0.05, 5, kRunsOn);
  if (!computed) return tl::unexpected(computed.error());
  const auto sent = ProbeDisturbance(gpu, *transfer, 0.05, 5, kRunsOn);
  if (!sent) return tl::unexpected(sent.error());
  return Measured{*effect, *computed, *sent};
}

// Two of four are near each other often enough. The rest must not be left out for that.
TEST(FigureOf, StatesTheErrorOfFewSamples) {
  constexpr int kRuns = 1000;
  for (const int samples : {4, 6, 8, 24}) {
    int held = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::mt19937 random(static_cast<unsigned>(run));
      std::normal_distribution<double> draw(0.02, 0.002);
      std::vector<double> values;
      for (int i = 0; i < samples; ++i) values.push_back(draw(random));
      const Figure figure = FigureOf(values, 1e-5);
      if (std::abs(figure.value - 0.02) <= kErrors * figure.error) ++held;
    }
    // Student's distribution of 3 degrees has 94 % within three errors.
    EXPECT_GE(held, 920) << samples;
  }
}

TEST(FigureOf, LeavesOutWhatIsFarFromMany) {
  std::vector<double> values(23, 0.02);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 1e-5 * static_cast<double>(i % 5);
  values.push_back(0.5);
  const Figure figure = FigureOf(values, 1e-5);
  EXPECT_EQ(figure.samples, 23);
  EXPECT_NEAR(figure.value, 0.02002, 1e-5);
}

TEST(NodeFigures, LatenciesAndCostsOfCallsAreAsTold) {
  const TemporaryDirectory folder;
  std::string config;
  std::vector<Truth> truths;
  for (int seed = 0; seed < kSeeds; ++seed) {
    truths.push_back(DrawTruth(seed));
    config += ConfigOf(truths.back(), seed);
  }
  const std::string path = folder.Path("gpus");
  const Result<void> made = CreateSimulatedGpus(path, config, "test.toml");
  ASSERT_TRUE(made) << made.error().message;
  const auto gpus = *SimulatedGpus::Open(path);
  const auto driver = *OpenDriver("simulated:" + path);
  std::vector<Result<Measured>> measured(kSeeds, Measured{});
  for (int begin = 0; begin < kSeeds; begin += kAtOnce) {
    std::vector<std::thread> threads;
    for (int seed = begin; seed < begin + kAtOnce; ++seed) {
      threads.emplace_back([&, seed] {
        const auto at = static_cast<std::size_t>(seed);
        measured[at] = Measure(gpus.get(), *driver->gpus()[at], seed);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Tally tally;
  for (std::size_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_TRUE(measured[seed]) << measured[seed].error().message;
    const Truth& truth = truths[seed];
    const EffectProbe& effect = measured[seed]->effect;
    ASSERT_EQ(effect.targets.size(), 4U);
    for (const TargetLatency& target : effect.targets) {
      const auto clock = static_cast<std::size_t>(target.mhz / 100 - 9);
      tally.Check(fmt::format("latency of clock {}", clock), target.seconds,
                  truth.call + truth.settle[clock]);
    }
    const Figure& top = effect.targets.back().seconds;
    tally.Check("spread", top.spread, truth.spread,
                truth.spread / std::sqrt(2.0 * (top.samples - 1)) + 1e-4);
    tally.Check("cost of a call to a computation", measured[seed]->computation.seconds_per_call,
                truth.stall);
    tally.Check("cost of a call to a transfer", measured[seed]->transfer.seconds_per_call,
                truth.transfer_stall);
    EXPECT_EQ(gpus->Snapshot(static_cast<int>(seed))->locked_mhz, std::nullopt);
  }
  tally.Expect();
}

TEST(NodeFigures, ASerialDriverIsFoundOut) {
  for (const bool is_serial : {false, true}) {
    const TemporaryDirectory folder;
    const std::string path = folder.Path("gpus");
    ASSERT_TRUE(CreateSimulatedGpus(
        path, fmt::format("serial_calls = {}\n[[gpus]]\ncount = 4\ncall_ms = 25\n", is_serial),
        "test.toml"));
    const auto driver = *OpenDriver("simulated:" + path);
    std::vector<Gpu*> gpus;
    for (const auto& gpu : driver->gpus()) gpus.push_back(gpu.get());
    const auto probe = ProbeTogether(gpus, 6, kRunsOn);
    ASSERT_TRUE(probe) << probe.error().message;
    EXPECT_EQ(probe->is_serial(), is_serial);
    EXPECT_GE(probe->alone_seconds.value, 0.025);
    if (is_serial) {
      EXPECT_GE(probe->together_seconds.value, 0.1);
      EXPECT_NEAR(probe->wait_seconds(), 0.075,
                  kErrors * (probe->together_seconds.error + probe->alone_seconds.error));
    } else {
      EXPECT_EQ(probe->wait_seconds(), 0);
    }
    const auto engine = *SimulatedGpus::Open(path);
    for (int gpu = 0; gpu < 4; ++gpu) EXPECT_EQ(engine->Snapshot(gpu)->locked_mhz, std::nullopt);
  }
}

// A counter and loads, in a time of its own.
class CounterModel {
 public:
  CounterModel(double period, double lag, double duty) {
    gpu_.clock_count = 1;
    gpu_.clocks_mhz[0] = 1000;
    gpu_.idle_watts = 80;
    gpu_.counter_period_seconds = period;
    gpu_.counter_lag_seconds = lag;
    gpu_.counter_duty = duty;
  }

  void Run(double load, double pause) {
    kernel_.seconds[0] = load;
    kernel_.joules[0] = 350 * load;
    BeginModelKernel(0, &state_);
    const double begin = state_.at_seconds;
    Read(begin + load);
    loads.push_back({begin, begin + load});
    Read(begin + load + pause);
  }
  // Reads, not quite regularly.
  void Read(double until) {
    std::uniform_real_distribution<double> gap(0.0015, 0.0035);
    while (state_.at_seconds < until) {
      AdvanceModel(gpu_, kernel_, std::min(until, state_.at_seconds + gap(random_)), &state_);
      reads.push_back({state_.at_seconds, state_.counter_joules});
    }
  }

  std::vector<CounterRead> reads;
  std::vector<Load> loads;

 private:
  ModelGpu gpu_;
  ModelKernel kernel_;
  ModelState state_;
  std::mt19937 random_{4};
};

TEST(NodeFigures, LagAndDutyOfTheCounterAreAsTold) {
  Tally tally;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<double> share(0, 1);
    const double period = 0.02 + 0.08 * share(random);
    const double lag = 0.3 * share(random);
    const double duty = seed % 4 == 0 ? 1 : 0.15 + 0.7 * share(random);
    const double golden = 0.618 * period;
    CounterModel loads(period, lag, duty);
    loads.Read(1);
    for (int i = 0; i < 8; ++i) loads.Run(0.8, 0.8 + golden);
    const auto probe = LagOf(loads.reads, loads.loads);
    ASSERT_TRUE(probe);
    // Looking at the end of each step alone, it is early on average.
    tally.Check("lag", probe->lag_seconds, lag - period * (1 - duty) / 2);
    EXPECT_NEAR(probe->idle_watts, 80, 5);
    EXPECT_NEAR(probe->load_watts, 350, 5);

    CounterModel bursts(period, lag, duty);
    bursts.Read(1);
    for (int i = 0; i < 32; ++i) bursts.Run(0.2 * period, lag + 3 * period + golden);
    const auto looks = DutyOf(bursts.reads, bursts.loads, probe->idle_watts, period, lag);
    ASSERT_TRUE(looks);
    tally.Check("duty", *looks, duty);
  }
  tally.Expect();
}

TEST(NodeFigures, ACounterThatStandsStillHasNoLag) {
  std::vector<CounterRead> reads;
  for (int i = 0; i < 100; ++i) reads.push_back({0.01 * i, 5});
  EXPECT_FALSE(LagOf(reads, {{0.2, 0.4}, {0.6, 0.8}}));
  EXPECT_FALSE(LagOf({}, {}));
  EXPECT_FALSE(DutyOf(reads, {{0.2, 0.21}}, 80, 0.02, 0));
  // One that never sees the load.
  for (std::size_t i = 0; i < reads.size(); ++i) reads[i].joules = 0.8 * static_cast<double>(i);
  EXPECT_FALSE(LagOf(reads, {{0.2, 0.4}, {0.6, 0.8}}));
}

// The whole of it in real time, once.
TEST(NodeFigures, TheStepProbeGivesTheClockBack) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("gpus");
  ASSERT_TRUE(CreateSimulatedGpus(
      path, "[[gpus]]\ncounter_period_ms = 40\ncounter_lag_ms = 150\ncounter_duty = 0.25\n", "x"));
  const auto gpus = *SimulatedGpus::Open(path);
  const auto driver = *OpenDriver("simulated:" + path);
  const auto kernel = MakeSimulatedKernel(gpus.get(), 0, SimulatedWork::kCompute);
  const auto probe = ProbeStep(*driver->gpus()[0], *kernel, kRunsOn);
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_GT(probe->load_watts, probe->idle_watts);
  ASSERT_TRUE(probe->duty);
  EXPECT_LT(probe->duty->value, 0.7);
  EXPECT_GT(probe->lag_seconds.value, 0.05);
  EXPECT_EQ(gpus->Snapshot(0)->locked_mhz, std::nullopt);
}

}  // namespace
}  // namespace perseus::device
