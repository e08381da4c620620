// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "common/temporary_directory.h"
#include "device/cuda_kernel.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DriverSpecTest, TakesKindsWithTheirPaths) {
  for (const char* text : {"nvml", "nvml:/opt/a:b/libnvidia-ml.so.1", "zeusd",
                           "zeusd:/run/zeusd/zeusd.sock", "simulated:gpus"}) {
    EXPECT_TRUE(CheckDriverSpec(text).has_value()) << text;
  }
}

TEST(DriverSpecTest, RefusesWithAWayOut) {
  for (const char* text : {"", ":", "nvlm", "simulated", "simulated:", "nvml:", "NVML "}) {
    const Result<void> spec = CheckDriverSpec(text);
    ASSERT_FALSE(spec.has_value()) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_THAT(CheckDriverSpec("nvlm").error().message, Mentions("'nvml'"));
}

TEST(ThrottleNamesTest, NamesWhatHoldsClocksBack) {
  EXPECT_THAT(ThrottleNames(0), IsEmpty());
  EXPECT_THAT(ThrottleNames(0x1 | 0x2 | 0x100), IsEmpty());
  EXPECT_THAT(ThrottleNames(0x4 | 0x40), ElementsAre("power cap", "hardware thermal slowdown"));
  EXPECT_THAT(ThrottleNames(std::uint64_t{1} << 40).size(), 1);
}

TEST(ClockConflictsTest, NoneOnAGpuThatIsLeftAlone) {
  GpuConditions conditions;
  conditions.power_limit_watts = 400;
  conditions.default_power_limit_watts = 400;
  conditions.temperature_celsius = 80;
  conditions.throttle_reasons = 0x1 | 0x2;  // Idle, and the clocks that were asked for.
  EXPECT_THAT(ClockConflicts(conditions, /*is_locked=*/true), IsEmpty());
  EXPECT_THAT(ClockConflicts({}, /*is_locked=*/true), IsEmpty());
}

TEST(ClockConflictsTest, NamesEveryOpponent) {
  GpuConditions conditions;
  conditions.power_limit_watts = 300;
  conditions.default_power_limit_watts = 400;
  conditions.throttle_reasons = 0x4 | 0x40;
  conditions.power_profiles = {"MAX_Q", "TRAINING"};
  conditions.power_floor_watts = 350;
  EXPECT_THAT(ClockConflicts(conditions, /*is_locked=*/true),
              ElementsAre(Mentions("power", "cap"), Mentions("thermal"),
                          Mentions("MAX_Q", "TRAINING"), Mentions("350"), Mentions("300", "400")));
}

// A free GPU that is slowed is nobody's plan in danger.
TEST(ClockConflictsTest, SlowdownsMatterOnlyWhileAClockIsLocked) {
  GpuConditions conditions;
  conditions.throttle_reasons = 0x4;
  EXPECT_THAT(ClockConflicts(conditions, /*is_locked=*/false), IsEmpty());
}

}  // namespace
}  // namespace perseus::device

// CUDA's driver interface, as a library that is really loaded.

namespace perseus::device {
namespace {

constexpr const char* kUuid = "GPU-0a1b2c3d-1111-2222-3333-0123456789ab";

// One test: the library keeps its GPUs as long as the process lives.
TEST(CudaKernel, RunsOnTheGpuOfTheUuidAndFollowsItsClock) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("gpus");
  const std::string config = std::string("[[gpus]]\n[[gpus]]\nuuid = \"") + kUuid +
                             "\"\nclocks_mhz = [705, 1410]\ncall_ms = 0\nsettle_ms = 0\n";
  ASSERT_TRUE(CreateSimulatedGpus(path, config, "test.toml").has_value());
  const auto gpus = SimulatedGpus::Open(path);
  ASSERT_TRUE(gpus.has_value());
  ::setenv("PERSEUS_FAKE_NVML", path.c_str(), 1);
  const auto kernel = OpenCudaKernel(PERSEUS_FAKE_CUDA_LIBRARY, kUuid);
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  ASSERT_TRUE((*kernel)->Fit(0.002).has_value());
  EXPECT_NEAR((*kernel)->Run()->seconds, 0.002, 1e-4);
  ASSERT_TRUE((*gpus)->LockClock(1, 705).has_value());
  EXPECT_NEAR((*kernel)->Run()->seconds, 0.004, 2e-4);

  const auto hidden = OpenCudaKernel(PERSEUS_FAKE_CUDA_LIBRARY, "GPU-other");
  ASSERT_FALSE(hidden.has_value());
  EXPECT_THAT(hidden.error().message, Mentions("CUDA", "'GPU-other'"));
  ::unsetenv("PERSEUS_FAKE_NVML");
}

TEST(CudaKernel, SaysWhatIsMissing) {
  const auto missing = OpenCudaKernel("/nowhere/libcuda.so.1", kUuid);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, Mentions("CUDA's"));
  const auto other = OpenCudaKernel(PERSEUS_OLD_NVML_LIBRARY, kUuid);
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, Mentions("driver:"));
}

// NVIDIA's assembler takes the kernel, for every GPU that it knows.
TEST(CudaKernel, AssemblesForRealGpus) {
  if (std::system("ptxas --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no ptxas here (NVIDIA's CUDA toolkit has it)";
  }
  const TemporaryDirectory folder;
  std::ofstream(folder.Path("spin.ptx")) << kSpinPtx;
  for (const std::string architecture : {"sm_80", "sm_90"}) {
    const std::string command = "ptxas -arch=" + architecture + " " + folder.Path("spin.ptx") +
                                " -o " + folder.Path("spin.cubin");
    EXPECT_EQ(std::system(command.c_str()), 0) << architecture;
  }
}

}  // namespace
}  // namespace perseus::device
