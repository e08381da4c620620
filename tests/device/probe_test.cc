// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/temporary_directory.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

const StopFunction kGoOn = [] { return false; };

class ProbeTest : public testing::Test {
 protected:
  void Make(const std::string& config) {
    const std::string path = folder_.Path("gpus");
    ASSERT_TRUE(CreateSimulatedGpus(path, config, "test.toml").has_value());
    engine_ = *SimulatedGpus::Open(path);
    driver_ = *OpenDriver("simulated:" + path);
    for (const auto& gpu : driver_->gpus()) gpus_.push_back(gpu.get());
  }

  TemporaryDirectory folder_;
  std::unique_ptr<SimulatedGpus> engine_;
  std::unique_ptr<Driver> driver_;
  std::vector<Gpu*> gpus_;
};

TEST(SummarizeCounterTest, FindsPeriodAndPower) {
  // Steps of 20 ms at 60 W, read every 3 ms.
  std::vector<CounterRead> reads;
  for (int i = 0; i < 400; ++i) {
    const double now = 0.003 * i;
    reads.push_back({now, 60 * 0.020 * std::floor(now / 0.020 + 1e-9)});
  }
  const CounterProbe probe = SummarizeCounter(reads, 0.003);
  EXPECT_EQ(probe.reads, 400);
  EXPECT_EQ(probe.changes, 59);
  ASSERT_TRUE(probe.period_seconds.has_value());
  EXPECT_NEAR(*probe.period_seconds, 0.020, 0.003 / 58);
  EXPECT_FALSE(probe.period_is_upper_bound);
  EXPECT_NEAR(*probe.counter_watts, 60, 60 * 0.003 / 1.16);
}

TEST(SummarizeCounterTest, TooFewStepsSayNothing) {
  EXPECT_FALSE(SummarizeCounter({}, 0.01).period_seconds.has_value());
  EXPECT_FALSE(SummarizeCounter({{0, 1}, {1, 1}, {2, 2}, {3, 2}}, 1).period_seconds.has_value());
  EXPECT_TRUE(SummarizeCounter({{0, 1}, {1, 2}, {2, 2}, {3, 3}}, 1).period_seconds.has_value());
}

TEST_F(ProbeTest, ReadsEveryGpusCounterAndPower) {
  Make("time_scale = 1000\n[[gpus]]\nidle_watts = 60\n[[gpus]]\nidle_watts = 90\n");
  const std::vector<CounterProbe> probes = ProbeCounters(gpus_, 0.1, 0.001, kGoOn);
  ASSERT_EQ(probes.size(), 2);
  EXPECT_GT(probes[0].reads, 1);
  EXPECT_EQ(probes[0].reading_watts, 60);
  EXPECT_EQ(probes[1].reading_watts, 90);
}

TEST_F(ProbeTest, SaysWhereThePeriodIsShorterThanItReads) {
  Make("[[gpus]]\nidle_watts = 60\ncounter_period_ms = 0\n");
  const CounterProbe probe = ProbeCounters(gpus_, 0.5, 0.010, kGoOn)[0];
  EXPECT_TRUE(probe.period_is_upper_bound);
  EXPECT_TRUE(probe.period_seconds.has_value());
}

TEST_F(ProbeTest, ACounterThatStandsStillOrFailsHasNoPeriod) {
  Make(
      "[[gpus]]\ncounter_period_ms = 600000\n"
      "[[gpus]]\nerrors = [{call = 'energy', every = 1, code = 'not_supported'}]\n");
  const std::vector<CounterProbe> probes = ProbeCounters(gpus_, 0.1, 0.010, kGoOn);
  EXPECT_FALSE(probes[0].period_seconds.has_value());
  EXPECT_FALSE(probes[0].error.has_value());
  ASSERT_TRUE(probes[1].error.has_value());
  EXPECT_THAT(probes[1].error->message, Mentions("offer"));
}

TEST_F(ProbeTest, MeasuresCallsAndGivesTheClockBack) {
  Make("[[gpus]]\ncall_ms = 5\nsettle_ms = 3\n");
  const Result<ClockProbe> probe = ProbeClock(*gpus_[0], 6, kGoOn);
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->calls, 6);
  EXPECT_GE(probe->median_call_seconds, 0.005);
  EXPECT_GE(probe->longest_call_seconds, probe->median_call_seconds);
  ASSERT_TRUE(probe->median_seen_seconds.has_value());
  EXPECT_GE(*probe->median_seen_seconds, 0.008);
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
  EXPECT_EQ(engine_->Snapshot(0)->set_calls, 6);
}

TEST_F(ProbeTest, GivesTheClockBackWhenStoppedOrWhenACallFails) {
  Make("[[gpus]]\ncall_ms = 0\nerrors = [{call = 'set_clock', every = 4, code = 'timeout'}]\n");
  const Result<ClockProbe> failed = ProbeClock(*gpus_[0], 10, kGoOn);
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, Mentions("time"));
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
  EXPECT_EQ(engine_->Snapshot(0)->reset_calls, 1);
  int asked = 0;
  const Result<ClockProbe> stopped = ProbeClock(*gpus_[0], 10, [&] { return ++asked > 2; });
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->calls, 2);
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
  EXPECT_EQ(engine_->Snapshot(0)->reset_calls, 2);
}

TEST_F(ProbeTest, SaysWhereTheGpuStaysLocked) {
  Make("[[gpus]]\ncall_ms = 0\nerrors = [{call = 'reset_clock', every = 1, code = 'timeout'}]\n");
  const Result<ClockProbe> probe = ProbeClock(*gpus_[0], 2, kGoOn);
  ASSERT_FALSE(probe.has_value());
  EXPECT_THAT(probe.error().message, Mentions("GPU", "0"));
  EXPECT_EQ(engine_->Snapshot(0)->reset_calls, 2);
}

}  // namespace
}  // namespace perseus::device
