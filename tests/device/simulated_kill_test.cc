// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A drill: processes that use the simulated GPUs are killed, at times drawn by
// chance and while they hold the lock. Nobody else must wait or lose energy.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <random>
#include <string>

#include "common/temporary_directory.h"
#include "device/simulated/simulated_file.h"
#include "device/simulated/simulated_gpu.h"

namespace perseus::device {
namespace {

constexpr double kIdleWatts = 50;
constexpr double kMostWatts = 400;
constexpr const char* kConfig = R"(
time_scale = 100
[[gpus]]
clocks_mhz = [1000, 1200, 1400]
idle_watts = 50
busy_watts = [100, 200, 400]
call_ms = 0
settle_ms = 1
counter_period_ms = 0
)";

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

[[noreturn]] void UseForever(const std::string& path, unsigned seed) {
  const auto gpus = SimulatedGpus::Open(path);
  if (!gpus) _exit(1);
  const Kernel kernel = (*gpus)->ModelledKernel(0, 1e-3, 0.8);
  for (std::mt19937 random(seed);;) {
    switch (random() % 4) {
      case 0:
        static_cast<void>((*gpus)->LockClock(0, 1000 + 200 * static_cast<int>(random() % 3)));
        break;
      case 1:
        static_cast<void>((*gpus)->ReleaseClock(0));
        break;
      case 2:
        static_cast<void>((*gpus)->Snapshot(0));
        break;
      default:
        static_cast<void>((*gpus)->RunKernel(0, kernel));
    }
  }
}

TEST(SimulatedKillTest, KilledUsersNeitherBlockNorCorrupt) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("gpus");
  ASSERT_TRUE(CreateSimulatedGpus(path, kConfig, "test").has_value());
  const auto gpus = SimulatedGpus::Open(path);
  ASSERT_TRUE(gpus.has_value());
  std::mt19937 random(11);
  SimulatedSnapshot before = *(*gpus)->Snapshot(0);
  for (unsigned kill = 0; kill < 150; ++kill) {
    const pid_t first = ::fork();
    if (first == 0) UseForever(path, 2 * kill);
    const pid_t second = ::fork();
    if (second == 0) UseForever(path, 2 * kill + 1);
    ::usleep(random() % 10'000);
    Kill(first);
    const Result<SimulatedSnapshot> now = (*gpus)->Snapshot(0);
    Kill(second);
    ASSERT_TRUE(now.has_value()) << now.error().message;
    const double passed = now->at_seconds - before.at_seconds;
    const double gained = now->joules - before.joules;
    EXPECT_GE(gained, kIdleWatts * passed * (1 - 1e-9) - 1e-9);
    EXPECT_LE(gained, kMostWatts * passed * (1 + 1e-9) + 1e-9);
    before = *now;
  }
  // What the last ones left runs to its end, then a new kernel takes its table.
  const Result<KernelRun> run = (*gpus)->RunKernel(0, {{1000, 0.5, 100}});
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_NEAR(run->seconds, 0.5, 1e-9);
  EXPECT_NEAR(run->joules, 100, 1e-6);
}

// Dies with the lock, in the middle of a change.
[[noreturn]] void DieInAChange(const std::string& path) {
  const auto file = SimulatedFile::Open(path);
  if (!file) _exit(1);
  auto hold = GpuHold::Take(**file, 0);
  if (!hold) _exit(1);
  SharedGpu& shared = (*file)->shared(0);
  shared.states[1 - (shared.current & 1)].joules = -1e9;
  hold->state().joules = -1e9;
  hold->free_kernel().joules.fill(-1);
  ::kill(::getpid(), SIGKILL);
  _exit(1);
}

TEST(SimulatedKillTest, DyingWithTheLockChangesNothing) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("gpus");
  ASSERT_TRUE(CreateSimulatedGpus(path, kConfig, "test").has_value());
  const auto gpus = SimulatedGpus::Open(path);
  ASSERT_TRUE(gpus.has_value());
  ASSERT_TRUE((*gpus)->LockClock(0, 1200).has_value());
  for (int death = 0; death < 5; ++death) {
    const SimulatedSnapshot before = *(*gpus)->Snapshot(0);
    const pid_t child = ::fork();
    if (child == 0) DieInAChange(path);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Result<SimulatedSnapshot> now = (*gpus)->Snapshot(0);
    ASSERT_TRUE(now.has_value()) << now.error().message;
    EXPECT_EQ(now->locked_mhz, 1200);
    EXPECT_NEAR(now->joules - before.joules, kIdleWatts * (now->at_seconds - before.at_seconds),
                1e-6);
    EXPECT_NEAR((*gpus)->RunKernel(0, {{1000, 0.5, 100}})->joules, 100, 1e-6);
  }
}

}  // namespace
}  // namespace perseus::device
