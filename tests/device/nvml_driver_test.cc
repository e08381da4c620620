// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The NVML driver over libraries that it really loads: the fake NVML, and one
// that lacks all that came later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_directory.h"
#include "device/device.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;

class NvmlDriverTest : public testing::Test {
 protected:
  void Make(const std::string& config) {
    const std::string path = folder_.Path("gpus");
    ASSERT_TRUE(CreateSimulatedGpus(path, config, "test.toml").has_value());
    auto gpus = SimulatedGpus::Open(path);
    ASSERT_TRUE(gpus.has_value());
    engine_ = *std::move(gpus);
    ::setenv("PERSEUS_FAKE_NVML", path.c_str(), 1);
    auto driver = OpenDriver(std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY);
    ASSERT_TRUE(driver.has_value()) << driver.error().message;
    driver_ = *std::move(driver);
  }
  void TearDown() override { ::unsetenv("PERSEUS_FAKE_NVML"); }
  Gpu& gpu(std::size_t index = 0) { return *driver_->gpus()[index]; }

  TemporaryDirectory folder_;
  std::unique_ptr<SimulatedGpus> engine_;
  std::unique_ptr<Driver> driver_;
};

TEST_F(NvmlDriverTest, SaysWhatIsThere) {
  Make("[[gpus]]\ncount = 2\nname = 'NVIDIA Test'\nclocks_mhz = [900, 1000, 1410]\n");
  EXPECT_EQ(driver_->kind(), "nvml");
  ASSERT_EQ(driver_->gpus().size(), 2);
  EXPECT_TRUE(driver_->faults().empty());
  EXPECT_EQ(gpu(1).info().name, "NVIDIA Test");
  EXPECT_EQ(gpu(1).info().uuid, engine_->info(1).uuid);
  EXPECT_EQ(gpu(1).info().index, 1);
  EXPECT_THAT(gpu(1).info().clocks_mhz, ElementsAre(900, 1000, 1410));
}

TEST_F(NvmlDriverTest, SetsAndGivesBackClocks) {
  Make("[[gpus]]\nclocks_mhz = [900, 1000, 1410]\ncall_ms = 1\nsettle_ms = 0\n");
  ASSERT_TRUE(gpu().LockClock(1000).has_value());
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, 1000);
  EXPECT_EQ(gpu().ClockMhz(), 1000);
  EXPECT_EQ(driver_->MaySetClocks(), true);
  ASSERT_TRUE(gpu().ReleaseClock().has_value());
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
  EXPECT_EQ(gpu().ClockMhz(), 1410);
  const Result<void> odd = gpu().LockClock(950);
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(odd.error().message, Mentions("950"));
  EXPECT_EQ(engine_->Snapshot(0)->set_calls, 1);
}

TEST_F(NvmlDriverTest, ReadsEnergyAndPower) {
  Make("time_scale = 100\n[[gpus]]\nidle_watts = 50.5\ncounter_period_ms = 0\n");
  EXPECT_EQ(gpu().PowerWatts(), 50.5);
  const double before = *gpu().EnergyJoules();
  ASSERT_TRUE(engine_->RunKernel(0, {{1410, 1, 300}}).has_value());
  const double gained = *gpu().EnergyJoules() - before;
  EXPECT_GE(gained, 300 - 0.002);  // NVML's millijoules.
  EXPECT_LE(gained, engine_->Snapshot(0)->joules - before + 0.002);
}

TEST_F(NvmlDriverTest, ReadsWhoElseActs) {
  Make(R"([[gpus]]
power_limit_watts = 300
default_power_limit_watts = 400
temperature_celsius = 71
throttle_reasons = 4
power_profiles = ["MAX_Q"]
power_floor_watts = 250
mig = true
[[gpus]]
)");
  const Result<GpuConditions> busy = gpu(0).Conditions();
  ASSERT_TRUE(busy.has_value());
  EXPECT_EQ(busy->power_limit_watts, 300);
  EXPECT_EQ(busy->default_power_limit_watts, 400);
  EXPECT_EQ(busy->temperature_celsius, 71);
  EXPECT_THAT(ThrottleNames(busy->throttle_reasons), ElementsAre("power cap"));
  EXPECT_THAT(busy->power_profiles, ElementsAre("MAX_Q"));
  EXPECT_EQ(busy->power_floor_watts, 250);
  EXPECT_TRUE(busy->mig);
  const Result<GpuConditions> plain = gpu(1).Conditions();
  ASSERT_TRUE(plain.has_value());
  EXPECT_TRUE(ThrottleNames(plain->throttle_reasons).empty());
  EXPECT_TRUE(plain->power_profiles.empty());
  EXPECT_EQ(plain->power_floor_watts, std::nullopt);
  EXPECT_FALSE(plain->mig);
}

TEST_F(NvmlDriverTest, SaysWhereTheRightIsMissing) {
  Make("[[gpus]]\nrefuse_sets = true\n");
  const Result<void> locked = gpu().LockClock(1410);
  ASSERT_FALSE(locked.has_value());
  EXPECT_EQ(locked.error().code, ErrorCode::kDenied);
  EXPECT_THAT(locked.error().message, Mentions("CAP_SYS_ADMIN"));
  // Known from then on, whatever the process's capabilities are.
  EXPECT_EQ(driver_->MaySetClocks(), false);
  engine_->SetRefuseSets(0, false);
  EXPECT_TRUE(gpu().ReleaseClock().has_value());
  EXPECT_EQ(driver_->MaySetClocks(), true);
}

TEST_F(NvmlDriverTest, ALostGpuIsAnErrorOfItsOwn) {
  Make("[[gpus]]\ncount = 2\n");
  engine_->SetLost(0, true);
  EXPECT_THAT(gpu(0).LockClock(1410).error().message, Mentions("GPU", "0"));
  EXPECT_EQ(gpu(0).ClockMhz().error().code, ErrorCode::kIo);
  EXPECT_EQ(gpu(0).EnergyJoules().error().code, ErrorCode::kIo);
  EXPECT_EQ(gpu(0).PowerWatts().error().code, ErrorCode::kIo);
  EXPECT_EQ(gpu(0).Conditions().error().code, ErrorCode::kIo);
  EXPECT_TRUE(gpu(1).Conditions().has_value());
  engine_->SetLost(0, false);
  EXPECT_TRUE(gpu(0).LockClock(1410).has_value());
}

TEST_F(NvmlDriverTest, TheDriverMayGoAway) {
  Make("[[gpus]]\nerrors = [{call = 'clock', every = 1, code = 'driver_not_loaded'}]\n");
  EXPECT_THAT(gpu().ClockMhz().error().message, Mentions("NVIDIA", "loaded;"));
}

TEST_F(NvmlDriverTest, AForkedChildIsRefused) {
  Make("[[gpus]]\n");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<void> locked = gpu().LockClock(1410);
    const bool refused = !locked && locked.error().message.find("forked") != std::string::npos;
    const bool all_refused = refused && !gpu().Conditions() && !gpu().EnergyJoules();
    driver_.reset();  // Leaves the parent's connection alone.
    const auto own = OpenDriver(std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY);
    _exit(all_refused && own && (*own)->gpus()[0]->LockClock(1410) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(gpu().LockClock(1410).has_value());
}

TEST_F(NvmlDriverTest, ManyThreadsMayCall) {
  Make("time_scale = 100\n[[gpus]]\ncount = 2\ncall_ms = 1\n");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      Gpu& mine = gpu(static_cast<std::size_t>(i % 2));
      for (int call = 0; call < 50; ++call) {
        EXPECT_TRUE(mine.LockClock(call % 2 == 0 ? 1410 : 1395).has_value());
        EXPECT_TRUE(mine.EnergyJoules().has_value());
        EXPECT_TRUE(mine.PowerWatts().has_value());
        EXPECT_TRUE(mine.Conditions().has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine_->Snapshot(0)->set_calls, 100);
}

TEST(NvmlLibraryTest, SaysWhatIsMissing) {
  const auto none = OpenDriver("nvml:/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kIo);
  EXPECT_THAT(none.error().message, Mentions("--gpus"));
  const auto other = OpenDriver("nvml:libm.so.6");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, Mentions("NVML:"));
  ::unsetenv("PERSEUS_FAKE_NVML");
  const auto unloaded = OpenDriver(std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY);
  ASSERT_FALSE(unloaded.has_value());
  EXPECT_THAT(unloaded.error().message, Mentions("NVML", "NVIDIA"));
}

TEST(NvmlLibraryTest, AnOldLibraryIsEnough) {
  const auto driver = OpenDriver(std::string("nvml:") + PERSEUS_OLD_NVML_LIBRARY);
  ASSERT_TRUE(driver.has_value()) << driver.error().message;
  ASSERT_EQ((*driver)->gpus().size(), 1);
  EXPECT_THAT((*driver)->faults(), ElementsAre(Mentions("GPU", "1")));
  Gpu& gpu = *(*driver)->gpus()[0];
  EXPECT_EQ(gpu.info().name, "Old GPU");
  EXPECT_THAT(gpu.info().clocks_mhz, ElementsAre(1380));
  EXPECT_EQ(gpu.PowerWatts(), 41.5);
  EXPECT_THAT(gpu.EnergyJoules().error().message, Mentions("offer"));
  EXPECT_EQ(gpu.LockClock(1380).error().code, ErrorCode::kDenied);
  EXPECT_EQ((*driver)->MaySetClocks(), false);
  const Result<GpuConditions> conditions = gpu.Conditions();
  ASSERT_TRUE(conditions.has_value());
  EXPECT_EQ(conditions->power_limit_watts, std::nullopt);
  EXPECT_EQ(conditions->temperature_celsius, std::nullopt);
  EXPECT_FALSE(conditions->mig);
}

}  // namespace
}  // namespace perseus::device
