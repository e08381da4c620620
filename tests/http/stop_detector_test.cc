// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/stop_detector.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace perseus::http {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(StopDetector, CountsGapsBetweenBeatsOnceEach) {
  std::int64_t now = 5 * kMs;
  StopDetector detector([&now] { return now; });
  for (int i = 0; i < 100; ++i) {
    now += 300 * kMs;
    detector.Beat();
    EXPECT_EQ(detector.Count(), 0u);
  }
  now += 7'000 * kMs;
  // Seen by who looks first, before the next beat.
  EXPECT_EQ(detector.Count(), 1u);
  EXPECT_DOUBLE_EQ(detector.last_seconds(), 7);
  detector.Beat();
  EXPECT_EQ(detector.Count(), 1u);
  now += 2'500 * kMs;
  detector.Beat();
  EXPECT_EQ(detector.Count(), 2u);
}

// Stopped between reading the clock and noting it.
TEST(StopDetector, ABeatThatIsInterruptedHidesNoStop) {
  std::int64_t now = 0;
  bool stop_inside = false;
  StopDetector detector([&] {
    const std::int64_t read = now;
    if (stop_inside) now += 9'000 * kMs;
    stop_inside = false;
    return read;
  });
  now += 200 * kMs;
  stop_inside = true;
  detector.Beat();
  EXPECT_EQ(detector.Count(), 1u);
}

TEST(StopDetector, SeesNoneInAProcessThatRuns) {
  StopDetector detector;
  detector.Start();
  EXPECT_EQ(detector.Count(), 0u);
  detector.Stop();
}

}  // namespace
}  // namespace perseus::http
