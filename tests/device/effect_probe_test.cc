// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/effect_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/temporary_directory.h"
#include "device/device.h"
#include "device/simulated/simulated_gpu.h"
#include "device/simulated/simulated_kernel.h"
#include "device/timed_kernel.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

const auto kNeverStop = [] { return false; };

// One that counts its runs, and may fail.
class CountedKernel final : public TimedKernel {
 public:
  explicit CountedKernel(SimulatedGpus* gpus, SimulatedWork work = SimulatedWork::kCompute)
      : kernel_(MakeSimulatedKernel(gpus, 0, work)) {}
  Result<void> Fit(double seconds) override { return kernel_->Fit(seconds); }
  Result<KernelTime> Run() override {
    ++runs;
    if (runs == fail_at) return MakeError(ErrorCode::kIo, "the kernel was lost");
    return kernel_->Run();
  }

  int runs = 0;
  int fail_at = -1;

 private:
  std::unique_ptr<TimedKernel> kernel_;
};

class EffectProbeTest : public ::testing::Test {
 protected:
  void Make(const std::string& config) {
    const std::string path = folder_.Path("gpus");
    ASSERT_TRUE(CreateSimulatedGpus(path, config, "test.toml").has_value());
    engine_ = *SimulatedGpus::Open(path);
    driver_ = *OpenDriver("simulated:" + path);
  }
  Gpu& gpu() { return *driver_->gpus()[0]; }
  void ExpectGivenBack() { EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt); }

  TemporaryDirectory folder_;
  std::unique_ptr<SimulatedGpus> engine_;
  std::unique_ptr<Driver> driver_;
};

// A call of 5 ms, and 40 ms more until the clock is in effect.
TEST_F(EffectProbeTest, MeasuresUntilKernelsRunAtTheNewClock) {
  Make("[[gpus]]\ncall_ms = 5\nsettle_ms = 40\n");
  CountedKernel kernel(engine_.get());
  const auto probe = ProbeEffect(gpu(), kernel, 4, kNeverStop);
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->switches, 4);
  EXPECT_GE(probe->median_seconds, 0.040);
  EXPECT_LT(probe->median_seconds, 0.9);  // Found, and not given up.
  EXPECT_GE(probe->longest_seconds, probe->median_seconds);
  EXPECT_NEAR(probe->kernel_seconds, 0.004, 4e-4);
  ExpectGivenBack();
}

TEST_F(EffectProbeTest, SaysWhereKernelsDoNotFollowTheClock) {
  Make("[[gpus]]\ncall_ms = 0\n");
  CountedKernel kernel(engine_.get(), SimulatedWork::kTransfer);
  const auto probe = ProbeEffect(gpu(), kernel, 4, kNeverStop);
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(probe.error().message, Mentions("long"));
  ExpectGivenBack();
}

TEST_F(EffectProbeTest, GivesTheClockBackWhateverHappens) {
  Make("[[gpus]]\ncall_ms = 0\nsettle_ms = 0\n");
  CountedKernel kernel(engine_.get());
  kernel.fail_at = 60;
  EXPECT_THAT(ProbeEffect(gpu(), kernel, 4, kNeverStop).error().message, Mentions("lost"));
  ExpectGivenBack();
  CountedKernel stopped(engine_.get());
  const auto probe = ProbeEffect(gpu(), stopped, 4, [&] { return stopped.runs > 100; });
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().code, ErrorCode::kCancelled);
  ExpectGivenBack();
  Make("[[gpus]]\ncall_ms = 0\nerrors = [{call = 'set_clock', every = 4, code = 'timeout'}]\n");
  CountedKernel refused(engine_.get());
  EXPECT_THAT(ProbeEffect(gpu(), refused, 4, kNeverStop).error().message, Mentions("time"));
  ExpectGivenBack();
}

}  // namespace
}  // namespace perseus::device
