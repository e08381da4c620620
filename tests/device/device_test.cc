// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

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
