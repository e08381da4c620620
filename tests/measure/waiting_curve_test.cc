// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/curve.h"
#include "measure/simulated_sweep.h"
#include "measure/sweep_coverage.h"

namespace perseus::measure {
namespace {

// What sweeps say of waiting.
struct Told {
  Coverage coverage;
  double errors = 0;  // Sum over the rows of waiting, relative.
  double rows = 0;
  double curves = 0;  // Ranks that found a curve, and those that found one number alone.
  double numbers = 0;

  void AddSweep(const Noise& noise, double share, double power, int seed) {
    SimulatedPipeline pipeline = Modelled(seed % 2 == 0 ? 0.05 : 0.02, 16);
    pipeline.counter_seconds = 0.02 + 0.02 * (seed % 4);
    Disturb(noise, &pipeline);
    pipeline.waiting_share = share;
    pipeline.waiting_power = power;
    pipeline.seed = static_cast<std::uint64_t>(seed);
    const auto result = SimulateSweep(pipeline);
    ASSERT_TRUE(result) << result.error().message;
    CountRows(pipeline, *result, &coverage);
    for (const SimulatedRank& rank : result->ranks) {
      if (rank.blocking) ++(rank.waiting.empty() ? numbers : curves);
      for (const WaitingRow& row : rank.waiting) {
        errors += std::abs(row.power.watts / WaitingWatts(pipeline, row.mhz) - 1);
        ++rows;
      }
    }
  }
};

// Over fixed seeds, of all noises: 24 sweeps of three ranks. Powers between the clock and its cube.
TEST(WaitingCurveTest, SweepsFindWhatWaitingDrawsAtEachClock) {
  Told told;
  const std::vector<Noise> noises = Noises();
  for (int seed = 1; seed <= 24; ++seed) {
    told.AddSweep(noises[static_cast<std::size_t>(seed) % noises.size()], 0.4, 1 + seed % 3, seed);
  }
  EXPECT_GE(told.curves, 0.9 * (told.curves + told.numbers));
  EXPECT_GT(told.rows, 900);
  EXPECT_GE(told.coverage.waiting.percent(), 90);
  EXPECT_GE(told.coverage.energies.percent(), 90);
  EXPECT_LT(told.errors, 0.02 * told.rows);
  EXPECT_LT(static_cast<double>(told.coverage.doubtful_waiting), 0.05 * told.rows);
}

TEST(WaitingCurveTest, WhatMachinesDoBesidesIsWithinTheErrors) {
  for (const Noise& noise : Disturbances()) {
    Told told;
    for (int seed = 1; seed <= 2; ++seed) told.AddSweep(noise, 0.4, 2, seed);
    EXPECT_GT(told.rows, 60) << noise.name;
    EXPECT_GE(told.coverage.waiting.percent(), 85) << noise.name;
    EXPECT_GE(told.coverage.energies.percent(), 85) << noise.name;
  }
}

// Then it stays one number, as it is.
TEST(WaitingCurveTest, WaitingThatDoesNotDependOnTheClockIsOneNumber) {
  Told told;
  const std::vector<Noise> noises = Noises();
  for (int seed = 1; seed <= 10; ++seed) {
    told.AddSweep(noises[static_cast<std::size_t>(seed) % noises.size()], 0, 2, seed);
  }
  EXPECT_EQ(told.curves, 0);
  EXPECT_EQ(told.numbers, 30);
}

TEST(WaitingCurveTest, IsThatOfItsUnknowns) {
  WaitingCurve curve;
  curve.highest_mhz = 1400;
  curve.watts = {100, 40, 0};
  EXPECT_DOUBLE_EQ(curve.At(1400).watts, 100);
  EXPECT_DOUBLE_EQ(curve.At(700).watts, 70);
  EXPECT_DOUBLE_EQ(curve.At(1600).watts, 100);  // The card does not keep such a clock.
  curve.covariance.at(0, 0) = 4;
  curve.covariance.at(1, 1) = 100;
  EXPECT_DOUBLE_EQ(curve.At(1400).watts_std, 2);
  EXPECT_DOUBLE_EQ(curve.At(700).watts_std, std::hypot(2, 7.5));
  // 30 W less, by an error of 7.5.
  EXPECT_TRUE(curve.DependsOnClock(700));
  curve.watts[1] = 20;
  EXPECT_FALSE(curve.DependsOnClock(700));
}

}  // namespace
}  // namespace perseus::measure
