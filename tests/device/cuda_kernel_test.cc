// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// CUDA's driver interface, as a library that is really loaded.

#include "device/cuda_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/temporary_directory.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"

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
