// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "perseus/result.h"
#include "server/runtime/job_service.h"

namespace perseus::server {
namespace {

TEST(SharedClockTest, GoesByTheStoresTime) {
  double local = 1000;
  SharedClock clock([&] { return local; }, [&] { return local; });
  EXPECT_EQ(clock.Now(), 1000);
  // Asking took 20 ms, half of it there.
  clock.Measure([&]() -> Result<double> {
    local += 0.02;
    return 5000.01;
  });
  EXPECT_NEAR(clock.Now(), 5000.02, 1e-9);
  local += 10;
  EXPECT_NEAR(clock.Now(), 5010.02, 1e-9);
}

TEST(SharedClockTest, WhatSaysLittleChangesNothingButTheFirstTime) {
  double local = 0;
  SharedClock clock([&] { return local; }, [&] { return local; });
  const auto slow = [&](double there) {
    return [&local, there]() -> Result<double> {
      local += 1;
      return there;
    };
  };
  clock.Measure(slow(100));
  EXPECT_NEAR(clock.Now(), 100.5, 1e-9);
  clock.Measure(slow(700));
  EXPECT_NEAR(clock.Now(), 101.5, 1e-9);
  clock.Measure([]() -> Result<double> { return MakeError(ErrorCode::kIo, "away"); });
  EXPECT_NEAR(clock.Now(), 101.5, 1e-9);
}

TEST(SharedClockTest, DoesNotFollowASetClockOfThisMachine) {
  double local = 1000;
  const double steady = 5;
  SharedClock clock([&] { return local; }, [&] { return steady; });
  clock.Measure([]() -> Result<double> { return 5000; });
  local += 3600;
  EXPECT_EQ(clock.Now(), 5000);
}

}  // namespace
}  // namespace perseus::server
