// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/driver_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/device.h"
#include "support/mentions.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DriverSpecTest, ReadsKindAndPath) {
  const Result<DriverSpec> nvml = ParseDriverSpec("nvml");
  ASSERT_TRUE(nvml.has_value());
  EXPECT_EQ(nvml->kind, DriverKind::kNvml);
  EXPECT_EQ(nvml->path, "");

  const Result<DriverSpec> library = ParseDriverSpec("nvml:/opt/a:b/libnvidia-ml.so.1");
  ASSERT_TRUE(library.has_value());
  EXPECT_EQ(library->path, "/opt/a:b/libnvidia-ml.so.1");

  const Result<DriverSpec> zeusd = ParseDriverSpec("zeusd:/run/zeusd/zeusd.sock");
  ASSERT_TRUE(zeusd.has_value());
  EXPECT_EQ(zeusd->kind, DriverKind::kZeusd);

  const Result<DriverSpec> simulated = ParseDriverSpec("simulated:gpus");
  ASSERT_TRUE(simulated.has_value());
  EXPECT_EQ(simulated->kind, DriverKind::kSimulated);
  EXPECT_EQ(simulated->path, "gpus");
}

TEST(DriverSpecTest, RefusesWithAWayOut) {
  for (const char* text : {"", ":", "nvlm", "simulated", "simulated:", "nvml:", "NVML "}) {
    const Result<DriverSpec> spec = ParseDriverSpec(text);
    ASSERT_FALSE(spec.has_value()) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_THAT(ParseDriverSpec("nvlm").error().message, Mentions("'nvml'"));
}

TEST(ThrottleNamesTest, NamesWhatHoldsClocksBack) {
  EXPECT_THAT(ThrottleNames(0), IsEmpty());
  EXPECT_THAT(ThrottleNames(0x1 | 0x2 | 0x100), IsEmpty());
  EXPECT_THAT(ThrottleNames(0x4 | 0x40), ElementsAre("power cap", "hardware thermal slowdown"));
  EXPECT_THAT(ThrottleNames(std::uint64_t{1} << 40).size(), 1);
}

}  // namespace
}  // namespace perseus::device
