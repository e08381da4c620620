// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "common/temporary_directory.h"
#include "device/device.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;

constexpr const char* kTwoGpus = R"(
time_scale = 10
[[gpus]]
count = 2
name = "Test GPU"
clocks_mhz = [1000, 1200, 1400]
idle_watts = 50
busy_watts = [100, 150, 300]
call_ms = 1
settle_ms = 1
counter_period_ms = 0
power_limit_watts = 350
default_power_limit_watts = 400
temperature_celsius = 61
power_profiles = ["MAX_Q", "LLM_TRAINING"]
)";

std::unique_ptr<SimulatedGpus> Make(const TemporaryDirectory& folder, const std::string& config) {
  const std::string path = folder.Path("gpus");
  const Result<void> made = CreateSimulatedGpus(path, config, "test.toml");
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  Result<std::unique_ptr<SimulatedGpus>> gpus = SimulatedGpus::Open(path);
  EXPECT_TRUE(gpus.has_value()) << (gpus ? "" : gpus.error().message);
  return gpus ? *std::move(gpus) : nullptr;
}

TEST(SimulatedGpuTest, SaysWhatItIs) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  EXPECT_EQ(gpus->count(), 2);
  EXPECT_EQ(gpus->info(1).name, "Test GPU");
  EXPECT_EQ(gpus->info(1).index, 1);
  EXPECT_THAT(gpus->info(0).uuid, Mentions("GPU-sim-"));
  EXPECT_NE(gpus->info(0).uuid, gpus->info(1).uuid);
  EXPECT_THAT(gpus->info(0).clocks_mhz, ElementsAre(1000, 1200, 1400));
  const GpuConditions conditions = gpus->Conditions(0);
  EXPECT_EQ(conditions.power_limit_watts, 350);
  EXPECT_EQ(conditions.default_power_limit_watts, 400);
  EXPECT_EQ(conditions.temperature_celsius, 61);
  EXPECT_EQ(conditions.power_floor_watts, std::nullopt);
  EXPECT_THAT(conditions.power_profiles, ElementsAre("MAX_Q", "LLM_TRAINING"));
}

// A driver that serves one call at a time; else two calls of two GPUs take as long as one.
TEST(SimulatedGpuTest, CallsForTwoGpusWaitForEachOtherWhereTheDriverIsSerial) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, "serial_calls = true\n[[gpus]]\ncount = 2\ncall_ms = 60\n");
  ASSERT_NE(gpus, nullptr);
  const double begin = gpus->NowSeconds();
  std::thread other([&] { EXPECT_TRUE(gpus->LockClock(1, 1200).has_value()); });
  EXPECT_TRUE(gpus->LockClock(0, 1200).has_value());
  other.join();
  EXPECT_GE(gpus->NowSeconds() - begin, 0.120);
}

TEST(SimulatedGpuTest, AKernelTakesItsTable) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  ASSERT_TRUE(gpus->LockClock(0, 1200).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1200) std::this_thread::yield();
  const Kernel kernel = {{1400, 0.1, 30}, {1200, 0.2, 25}, {1000, 0.3, 24}};
  const Result<KernelRun> run = gpus->RunKernel(0, kernel);
  ASSERT_TRUE(run.has_value());
  EXPECT_NEAR(run->seconds, 0.2, 1e-9);
  EXPECT_NEAR(run->joules, 25, 1e-6);
  EXPECT_EQ(run->start_mhz, 1200);
  EXPECT_NEAR(run->end_seconds - run->begin_seconds, run->seconds, 1e-9);
  EXPECT_GE(gpus->NowSeconds(), run->end_seconds);
  EXPECT_FALSE(gpus->Snapshot(0)->busy);
}

TEST(SimulatedGpuTest, BetweenClocksOfTheTableIsOnTheLine) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  ASSERT_TRUE(gpus->LockClock(0, 1200).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1200) std::this_thread::yield();
  EXPECT_NEAR(gpus->RunKernel(0, {{1000, 0.4, 40}, {1400, 0.2, 60}})->seconds, 0.3, 1e-9);
  EXPECT_NEAR(gpus->RunKernel(0, {{1300, 0.1, 7}})->joules, 7, 1e-6);
  EXPECT_NEAR(gpus->RunKernel(0, {{1000, 0.1, 7}, {1100, 0.05, 8}})->seconds, 0.05, 1e-9);
}

// A card that boosts beyond the clocks that can be locked, as some do.
TEST(SimulatedGpuTest, WithoutALockedClockItBoosts) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, std::string(kTwoGpus) + "boost_mhz = 1600\n");
  ASSERT_NE(gpus, nullptr);
  const Kernel kernel = {{1000, 0.2, 20}, {1400, 0.1, 30}, {1600, 0.08, 32}};
  EXPECT_EQ(gpus->Snapshot(0)->clock_mhz, 1600);
  Result<KernelRun> run = gpus->RunKernel(0, kernel);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->start_mhz, 1600);
  EXPECT_NEAR(run->seconds, 0.08, 1e-9);
  EXPECT_NEAR(run->joules, 32, 1e-6);
  ASSERT_TRUE(gpus->LockClock(0, 1400).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1400) std::this_thread::yield();
  run = gpus->RunKernel(0, kernel);
  EXPECT_NEAR(run->seconds, 0.1, 1e-9);
  ASSERT_TRUE(gpus->ReleaseClock(0).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1600) std::this_thread::yield();
  run = gpus->RunKernel(0, kernel);
  EXPECT_NEAR(run->seconds, 0.08, 1e-9);
  EXPECT_FALSE(gpus->LockClock(0, 1600).has_value());  // It cannot be locked.
  const Kernel modelled = gpus->ModelledKernel(0, 0.1, 1);
  EXPECT_EQ(modelled.back().mhz, 1600);
  EXPECT_NEAR(modelled.back().seconds, 0.0875, 1e-9);
}

// The limit is 350 W. The kernel would draw 400 W at 1400 MHz, and 300 W at 1200 MHz.
TEST(SimulatedGpuTest, APowerCapSlowsWhatWouldDrawMore) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, std::string(kTwoGpus) + "power_cap = true\nboost_mhz = 1600\n");
  ASSERT_NE(gpus, nullptr);
  const Kernel kernel = {{1000, 0.16, 32}, {1200, 0.12, 36}, {1400, 0.1, 40}, {1600, 0.09, 45}};
  Result<KernelRun> run = gpus->RunKernel(0, kernel);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->start_mhz, 1200);
  EXPECT_NEAR(run->seconds, 0.12, 1e-9);
  EXPECT_NEAR(run->joules, 36, 1e-6);
  const Kernel light = {{1000, 0.1, 10}, {1400, 0.08, 12}, {1600, 0.07, 14}};
  EXPECT_EQ(gpus->RunKernel(0, light)->start_mhz, 1600);
  ASSERT_TRUE(gpus->LockClock(0, 1000).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1000) std::this_thread::yield();
  EXPECT_NEAR(gpus->RunKernel(0, kernel)->seconds, 0.16, 1e-9);  // Below the cap.
  const TemporaryDirectory other;
  EXPECT_NEAR(Make(other, kTwoGpus)->RunKernel(0, kernel)->seconds, 0.1, 1e-9);  // No cap.
}

TEST(SimulatedGpuTest, RefusesKernelsThatCannotBe) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  for (const Kernel& kernel : {Kernel{}, Kernel{{1000, 0, 1}}, Kernel{{1000, 1, -1}},
                               Kernel{{0, 1, 1}}, Kernel{{1000, HUGE_VAL, 1}}}) {
    const Result<KernelRun> run = gpus->RunKernel(0, kernel);
    ASSERT_FALSE(run.has_value());
    EXPECT_EQ(run.error().code, ErrorCode::kInvalidInput);
  }
}

TEST(SimulatedGpuTest, AnotherThreadRaisesTheClockInTheMiddle) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  ASSERT_TRUE(gpus->LockClock(0, 1000).has_value());
  while (gpus->Snapshot(0)->clock_mhz != 1000) std::this_thread::yield();
  std::thread operator_thread([&] {
    while (!gpus->Snapshot(0)->busy) std::this_thread::yield();
    EXPECT_TRUE(gpus->LockClock(0, 1400).has_value());
  });
  // Left alone it would take 100 s of real time.
  const Result<KernelRun> run = gpus->RunKernel(0, {{1000, 1000, 24'000}, {1400, 1, 30}});
  operator_thread.join();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->start_mhz, 1000);
  EXPECT_GT(run->seconds, 0.9);
  EXPECT_LT(run->seconds, 900);
}

TEST(SimulatedGpuTest, KernelsOfTwoThreadsRunOneAfterTheOther) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  Result<KernelRun> runs[2];
  std::thread first([&] { runs[0] = gpus->RunKernel(0, {{1400, 0.3, 30}}); });
  std::thread second([&] { runs[1] = gpus->RunKernel(0, {{1400, 0.3, 30}}); });
  first.join();
  second.join();
  ASSERT_TRUE(runs[0].has_value());
  ASSERT_TRUE(runs[1].has_value());
  if (runs[0]->begin_seconds > runs[1]->begin_seconds) std::swap(runs[0], runs[1]);
  EXPECT_LE(runs[0]->end_seconds, runs[1]->begin_seconds + 1e-9);
}

TEST(SimulatedGpuTest, AKernelThatWasReadyEarlierBeganThen) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  const Kernel kernel = {{1400, 0.2, 40}};
  const Result<KernelRun> first = gpus->RunKernel(0, kernel);
  ASSERT_TRUE(first.has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Some 20 ms of theirs.
  const Result<KernelRun> second = gpus->RunKernel(0, kernel, first->end_seconds);
  ASSERT_TRUE(second.has_value());
  EXPECT_DOUBLE_EQ(second->begin_seconds, first->end_seconds);
  EXPECT_NEAR(second->joules, 40, 1e-9);
  // Ready before the one before it ended, and before the last change of the clock.
  const Result<KernelRun> third = gpus->RunKernel(0, kernel, 0);
  EXPECT_DOUBLE_EQ(third->begin_seconds, second->end_seconds);
  ASSERT_TRUE(gpus->LockClock(0, 1200).has_value());
  const Result<KernelRun> fourth = gpus->RunKernel(0, kernel, third->end_seconds);
  EXPECT_GT(fourth->begin_seconds, third->end_seconds);
  // In the future: now.
  const Result<KernelRun> fifth = gpus->RunKernel(0, kernel, 1e9);
  EXPECT_LE(fifth->end_seconds, gpus->NowSeconds());
  // Energy that somebody may have read is never taken back: idle GPUs draw 50 W.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double joules = gpus->Snapshot(0)->joules;
  const Result<KernelRun> frugal = gpus->RunKernel(0, {{1400, 0.001, 0}}, fifth->end_seconds);
  EXPECT_GT(frugal->begin_seconds, fifth->end_seconds);
  EXPECT_GE(gpus->Snapshot(0)->joules, joules);
}

TEST(SimulatedGpuTest, TwoOpenersSeeTheSameGpus) {
  const TemporaryDirectory folder;
  const auto one = Make(folder, kTwoGpus);
  ASSERT_NE(one, nullptr);
  const auto two = SimulatedGpus::Open(folder.Path("gpus"));
  ASSERT_TRUE(two.has_value());
  ASSERT_TRUE(one->LockClock(1, 1000).has_value());
  EXPECT_EQ((*two)->Snapshot(1)->locked_mhz, 1000);
  EXPECT_EQ((*two)->Snapshot(0)->locked_mhz, std::nullopt);
  ASSERT_TRUE((*two)->ReleaseClock(1).has_value());
  EXPECT_EQ(one->Snapshot(1)->locked_mhz, std::nullopt);
}

TEST(SimulatedGpuTest, RefusesFilesThatAreNone) {
  const TemporaryDirectory folder;
  const auto message = [&](const std::string& name) {
    const auto gpus = SimulatedGpus::Open(folder.Path(name));
    return gpus ? std::string("it opened") : gpus.error().message;
  };
  EXPECT_THAT(message("none"), Mentions("file"));
  folder.Put("empty", "");
  EXPECT_THAT(message("empty"), Mentions("no", "simulated"));
  folder.Put("text", std::string(100'000, 'x'));
  EXPECT_THAT(message("text"), Mentions("no", "simulated"));
  EXPECT_THAT(message(""), Mentions("open"));  // The folder.

  ASSERT_NE(Make(folder, kTwoGpus), nullptr);
  const std::string good = folder.Get("gpus");
  folder.Put("short", good.substr(0, good.size() - 1));
  EXPECT_THAT(message("short"), Mentions("short"));
  std::string bytes = good;
  bytes[16] = 9;
  folder.Put("version", bytes);
  EXPECT_THAT(message("version"), Mentions("version", "9"));
  bytes = good;
  bytes[32 + 3] = bytes[32 + 3] == 'x' ? 'y' : 'x';
  folder.Put("boot", bytes);
  EXPECT_THAT(message("boot"), Mentions("started"));
  bytes = good;
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  folder.Put("config", bytes);
  EXPECT_THAT(message("config"), Mentions("damaged"));
}

TEST(SimulatedGpuTest, ADamagedStateIsAnErrorAndNoCrash) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  const auto file = SimulatedFile::Open(folder.Path("gpus"));
  ASSERT_TRUE(file.has_value());
  SharedGpu& shared = (*file)->shared(0);
  const ModelState good = shared.states[0];
  const auto message = [&](const ModelState& state) {
    shared.states[0] = state;
    const auto snapshot = gpus->Snapshot(0);
    return snapshot ? std::string("it was read") : snapshot.error().message;
  };
  ModelState bad = good;
  bad.clock = 3;
  EXPECT_THAT(message(bad), Mentions("damaged"));
  bad = good;
  bad.pending_count = 17;
  EXPECT_THAT(message(bad), Mentions("damaged"));
  bad = good;
  bad.kernel_slot = 2;
  EXPECT_THAT(message(bad), Mentions("damaged"));
  EXPECT_EQ(message(good), "it was read");
}

TEST(SimulatedDriverTest, FailsWhereTheConfigurationSays) {
  const TemporaryDirectory folder;
  ASSERT_NE(Make(folder, R"(
[[gpus]]
call_ms = 0
errors = [{call = "set_clock", every = 3, code = "timeout"},
          {call = "energy", every = 1, code = "not_supported"}]
)"),
            nullptr);
  const auto driver = OpenDriver("simulated:" + folder.Path("gpus"));
  ASSERT_TRUE(driver.has_value());
  EXPECT_EQ((*driver)->kind(), "simulated");
  Gpu& gpu = *(*driver)->gpus()[0];
  EXPECT_TRUE(gpu.LockClock(1410).has_value());
  EXPECT_TRUE(gpu.LockClock(1395).has_value());
  const Result<void> third = gpu.LockClock(1380);
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().code, ErrorCode::kIo);
  EXPECT_THAT(third.error().message, Mentions("GPU", "0"));
  EXPECT_TRUE(gpu.LockClock(1380).has_value());
  EXPECT_FALSE(gpu.EnergyJoules().has_value());
  EXPECT_TRUE(gpu.PowerWatts().has_value());
  const Result<void> odd = gpu.LockClock(1381);
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidInput);
}

TEST(SimulatedDriverTest, RightsAndLossChangeWhileItRuns) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, "[[gpus]]\nrefuse_sets = true\n[[gpus]]\n");
  ASSERT_NE(gpus, nullptr);
  const auto driver = OpenDriver("simulated:" + folder.Path("gpus"));
  ASSERT_TRUE(driver.has_value());
  EXPECT_EQ((*driver)->MaySetClocks(), false);
  Gpu& gpu = *(*driver)->gpus()[0];
  EXPECT_EQ(gpu.LockClock(1410).error().code, ErrorCode::kDenied);
  EXPECT_EQ(gpu.ReleaseClock().error().code, ErrorCode::kDenied);
  EXPECT_TRUE(gpu.EnergyJoules().has_value());
  gpus->SetRefuseSets(0, false);
  EXPECT_EQ((*driver)->MaySetClocks(), true);
  EXPECT_TRUE(gpu.LockClock(1410).has_value());
  gpus->SetLost(0, true);
  EXPECT_EQ(gpu.EnergyJoules().error().code, ErrorCode::kIo);
  EXPECT_THAT(gpu.LockClock(1410).error().message, Mentions("bus;"));
  EXPECT_TRUE((*driver)->gpus()[1]->EnergyJoules().has_value());
}

TEST(SimulatedDriverTest, ReadsFollowTheGpu) {
  const TemporaryDirectory folder;
  const auto gpus = Make(folder, kTwoGpus);
  ASSERT_NE(gpus, nullptr);
  const auto driver = OpenDriver("simulated:" + folder.Path("gpus"));
  ASSERT_TRUE(driver.has_value());
  Gpu& gpu = *(*driver)->gpus()[0];
  EXPECT_EQ(gpu.ClockMhz(), 1400);
  EXPECT_EQ(gpu.PowerWatts(), 50);
  const double before = *gpu.EnergyJoules();
  const Kernel kernel = gpus->ModelledKernel(0, 0.1, 0.8);
  EXPECT_NEAR(kernel[0].seconds, 0.1 * (0.8 * 1.4 + 0.2), 1e-12);
  EXPECT_NEAR(kernel[0].joules, kernel[0].seconds * 100, 1e-9);
  EXPECT_NEAR(gpus->RunKernel(0, kernel)->joules, 30, 1e-6);
  EXPECT_GE(*gpu.EnergyJoules() - before, 30 - 1e-6);
  EXPECT_EQ(gpu.Conditions()->power_limit_watts, 350);
}

}  // namespace
}  // namespace perseus::device

// A drill: processes that use the simulated GPUs are killed, at times drawn by
// chance and while they hold the lock. Nobody else must wait or lose energy.

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
