// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/fights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mentions.h"

namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Fights, NoneOnAGpuThatIsLeftAlone) {
  device::GpuConditions conditions;
  conditions.power_limit_watts = 400;
  conditions.default_power_limit_watts = 400;
  conditions.temperature_celsius = 80;
  conditions.throttle_reasons = 0x1 | 0x2;  // Idle, and the clocks that were asked for.
  EXPECT_THAT(FightsOf(conditions, /*is_locked=*/true), IsEmpty());
  EXPECT_THAT(FightsOf({}, /*is_locked=*/true), IsEmpty());
}

TEST(Fights, NamesEveryOpponent) {
  device::GpuConditions conditions;
  conditions.power_limit_watts = 300;
  conditions.default_power_limit_watts = 400;
  conditions.throttle_reasons = 0x4 | 0x40;
  conditions.power_profiles = {"MAX_Q", "TRAINING"};
  conditions.power_floor_watts = 350;
  EXPECT_THAT(FightsOf(conditions, /*is_locked=*/true),
              ElementsAre(Mentions("power", "cap"), Mentions("thermal"),
                          Mentions("MAX_Q", "TRAINING"), Mentions("350"), Mentions("300", "400")));
}

// A free GPU that is slowed is nobody's plan in danger.
TEST(Fights, SlowdownsMatterOnlyWhileAClockIsLocked) {
  device::GpuConditions conditions;
  conditions.throttle_reasons = 0x4;
  EXPECT_THAT(FightsOf(conditions, /*is_locked=*/false), IsEmpty());
}

}  // namespace
}  // namespace perseus::agent
