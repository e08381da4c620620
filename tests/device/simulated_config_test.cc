// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

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

}  // namespace
}  // namespace perseus::device
