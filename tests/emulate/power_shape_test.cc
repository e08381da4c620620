// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/power_shape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <vector>

#include "emulate/fourier.h"
#include "emulation_testing.h"
#include "perseus/power_limits.h"

namespace perseus::emulate {
namespace {

using emulator_testing::FakePolicy;
using emulator_testing::kFast;
using emulator_testing::kSlow;
using emulator_testing::Plans;
using emulator_testing::PlanWith;
using emulator_testing::TinyPipeline;

constexpr double kTwoPi = 2 * std::numbers::pi;

std::vector<double> Wave(double mean, double amplitude, double hz, int count) {
  std::vector<double> watts;
  for (int k = 0; k < count; ++k) {
    watts.push_back(mean + amplitude * std::sin(kTwoPi * hz * k * kShapeInterval));
  }
  return watts;
}

RC_GTEST_PROP(FourierTest, IsTheSumThatDefinesIt, ()) {
  const auto size = std::size_t{1} << *rc::gen::inRange(0, 7);
  std::vector<std::complex<double>> values;
  for (std::size_t n = 0; n < size; ++n) {
    values.emplace_back(*rc::gen::inRange(-1000, 1000), *rc::gen::inRange(-1000, 1000));
  }
  std::vector<std::complex<double>> transformed = values;
  Transform(&transformed);
  for (std::size_t k = 0; k < size; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t n = 0; n < size; ++n) {
      const auto turn = static_cast<double>(k * n % size) / static_cast<double>(size);
      sum += values[n] * std::polar(1.0, -kTwoPi * turn);
    }
    RC_ASSERT(std::abs(sum - transformed[k]) < 1e-8);
  }
}

TEST(PowerShapeTest, AWaveIsWhereItSwings) {
  // 2^14 values of 5 ms hold 64 whole periods of 0.78125 Hz.
  const std::vector<double> watts = Wave(5000, 1000, 0.78125, 1 << 14);
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {.band = {0.5, 2}});
  EXPECT_NEAR(shape.rms_watts, 1000 / std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(shape.band_rms_watts, shape.rms_watts, 1e-6);
  EXPECT_NEAR(shape.band_share, 1, 1e-9);
  EXPECT_EQ(shape.strongest_hz, 0.78125);
  EXPECT_NEAR(ShapeOf(watts, kShapeInterval, {.band = {2, 20}}).band_share, 0, 1e-9);
  ASSERT_EQ(shape.spectrum.size(), 48u);
  for (const SpectrumColumn& column : shape.spectrum) {
    const bool here = column.low_hz <= 0.78125 && 0.78125 < column.high_hz;
    EXPECT_NEAR(column.rms_watts, here ? shape.rms_watts : 0, 1e-3) << column.low_hz;
  }
}

TEST(PowerShapeTest, OnlyHalfTheSwingsAreInAHalfOfTheBand) {
  std::vector<double> watts = Wave(5000, 300, 0.78125, 1 << 14);
  const std::vector<double> fast = Wave(0, 400, 12.5, 1 << 14);
  for (std::size_t k = 0; k < watts.size(); ++k) watts[k] += fast[k];
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {.band = {5, 20}});
  EXPECT_NEAR(shape.band_share, 16.0 / 25, 1e-9);
  EXPECT_NEAR(shape.band_rms_watts, 400 / std::sqrt(2.0), 1e-6);
}

TEST(PowerShapeTest, AStepIsARampOverItsWindow) {
  std::vector<double> watts(1000, 100);
  for (std::size_t k = 500; k < 1000; ++k) watts[k] = 700;
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {});
  ASSERT_TRUE(shape.ramp_1s && shape.ramp_100ms);
  EXPECT_NEAR(shape.ramp_1s->rise_watts_per_second, 600, 1e-9);
  EXPECT_NEAR(shape.ramp_100ms->rise_watts_per_second, 6000, 1e-9);
  EXPECT_NEAR(shape.ramp_1s->fall_watts_per_second, 0, 1e-9);
}

TEST(PowerShapeTest, TheSteepestWindowsNeedNotBeginAtWholeSeconds) {
  std::vector<double> watts(1000, 100);
  for (std::size_t k = 437; k < 1000; ++k) watts[k] = 20;
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {});
  EXPECT_NEAR(shape.ramp_1s->fall_watts_per_second, 80, 1e-9);
}

TEST(PowerShapeTest, AShortJobHasNoRampOverALongWindow) {
  EXPECT_FALSE(ShapeOf(Wave(10, 1, 1, 399), kShapeInterval, {}).ramp_1s);
  EXPECT_TRUE(ShapeOf(Wave(10, 1, 1, 400), kShapeInterval, {}).ramp_1s);
  EXPECT_FALSE(ShapeOf(Wave(10, 1, 1, 39), kShapeInterval, {}).ramp_100ms);
  EXPECT_FALSE(ShapeOf({}, kShapeInterval, {}).stated());
}

TEST(PowerShapeTest, WhatRoundingLeavesIsNoSwing) {
  std::vector<double> watts(1000, 1e6);
  watts[3] += 1e-6;
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {});
  EXPECT_EQ(shape.rms_watts, 0);
  EXPECT_EQ(shape.band_share, 0);
  EXPECT_EQ(shape.strongest_hz, 0);
}

TEST(PowerShapeTest, BallastFillsWhatFallsTooFast) {
  // A dip of one second; by 1000 W/s power may be 200 W down after 0.2 s.
  std::vector<double> watts(600, 1000);
  for (std::size_t k = 200; k < 400; ++k) watts[k] = 0;
  // Between the cones from both sides: 1 s of 1000 W less a triangle of 1 s and 500 W.
  EXPECT_NEAR(BallastJoules(watts, kShapeInterval, 1000), 1000 - 250, 6);
  EXPECT_EQ(BallastJoules(watts, kShapeInterval, 1e9), 0);
}

RC_GTEST_PROP(PowerShapeTest, WithBallastTheRampKeepsTheLimit, ()) {
  std::vector<double> watts;
  for (int k = 0; k < 500; ++k) watts.push_back(*rc::gen::inRange(0, 1000));
  const double limit = *rc::gen::inRange(1, 100000);
  const double step = limit * kShapeInterval;
  std::vector<double> held = watts;
  for (std::size_t k = 1; k < held.size(); ++k) held[k] = std::max(held[k], held[k - 1] - step);
  for (std::size_t k = held.size() - 1; k-- > 0;) held[k] = std::max(held[k], held[k + 1] - step);
  const PowerShape shape = ShapeOf(held, kShapeInterval, {});
  RC_ASSERT(shape.ramp_1s->most() <= limit * (1 + 1e-9) + 1e-9);
  RC_ASSERT(shape.ramp_100ms->most() <= limit * (1 + 1e-9) + 1e-6);
  const double added = std::accumulate(held.begin(), held.end(), 0.0) -
                       std::accumulate(watts.begin(), watts.end(), 0.0);
  RC_ASSERT(std::abs(added * kShapeInterval - BallastJoules(watts, kShapeInterval, limit)) < 1e-6);
}

TEST(ShapeBuilderTest, SamplesGetLongerWithTheJob) {
  ShapeBuilder builder({});
  const double seconds = kShapeInterval * static_cast<double>(kMostShapeValues) * 1.5;
  const std::vector<PowerSegment> segment = {{0, seconds, 10}};
  builder.BeginIteration(0);
  builder.Add(segment, seconds, 1);
  const PowerShape shape = builder.Finish(seconds);
  EXPECT_EQ(shape.interval_seconds, 2 * kShapeInterval);
  EXPECT_EQ(shape.values, kMostShapeValues * 3 / 4);
}

TEST(ShapeBuilderTest, AJobThatIsTooLongHasNoShape) {
  ShapeBuilder builder({});
  const double seconds = 0.6 * kLongestShapeInterval * static_cast<double>(kMostShapeValues);
  const std::vector<PowerSegment> segment = {{0, seconds, 10}};
  for (int n = 0; n < 2; ++n) {
    builder.BeginIteration(n * seconds);
    builder.Add(segment, seconds, 1);
  }
  EXPECT_FALSE(builder.Finish(2 * seconds).stated());
}

TEST(ShapeBuilderTest, ALastValueOfLessThanAnIntervalIsLeftOut) {
  ShapeBuilder builder({});
  const std::vector<PowerSegment> segment = {{0, 0.0123, 10}};
  builder.BeginIteration(0);
  builder.Add(segment, 0.0123, 1);
  EXPECT_EQ(builder.Finish(0.0123).values, 2);
}

TEST(PowerLimitsTest, SlowsDownToTheFirstPlanThatKeepsThem) {
  // 4 stages of 300 J in 2 s at most: slower clocks draw less and swing less.
  const Planner planner = Plans(TinyPipeline(4, 4));
  const Plan fast = PlanWith(planner, {kFast});
  const Plan slow = PlanWith(planner, {kSlow});
  const double base = fast.iteration_time_seconds;
  const FakePolicy policy(
      [&](double seconds) -> Result<Plan> { return seconds < 1.12 * base ? fast : slow; });
  EmulationSpec spec;
  spec.iterations = 3;
  spec.target_seconds = base;
  const auto at_limit = [&](double band_rms_watts) {
    PowerLimits limits;
    limits.band_rms_watts = band_rms_watts;
    return *SlowDownToLimits(planner, policy, spec, limits);
  };
  const std::vector<SlowerRun> all = at_limit(0);
  EXPECT_EQ(all.size(), 9u);
  for (const SlowerRun& run : all) EXPECT_FALSE(run.keeps);
  ASSERT_LT(all.back().shape.band_rms_watts, all.front().shape.band_rms_watts);
  const std::vector<SlowerRun> some = at_limit(all.back().shape.band_rms_watts);
  ASSERT_EQ(some.size(), 5u);  // 1, 1.02, 1.05, 1.1, 1.15
  EXPECT_TRUE(some.back().keeps);
  EXPECT_FALSE(some[3].keeps);
  EXPECT_DOUBLE_EQ(some.back().target_seconds, 1.15 * base);
  EXPECT_EQ(at_limit(1e9).size(), 1u);
}

TEST(PowerLimitsTest, APolicyWithOnePlanIsNotRunForLongerTimes) {
  const Planner planner = Plans(TinyPipeline(4, 4));
  const Plan fast = PlanWith(planner, {kFast});
  const FakePolicy policy = emulator_testing::Only(fast);
  EmulationSpec spec;
  spec.iterations = 3;
  spec.target_seconds = fast.iteration_time_seconds;
  const auto runs = SlowDownToLimits(planner, policy, spec, {.band_rms_watts = 0});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().target_seconds, spec.target_seconds);
}

TEST(PowerShapeTest, ABandThatTheJobIsTooShortForIsNotStated) {
  // 10 s: ends of the band 0.1 Hz apart are told apart, closer ones are not.
  const std::vector<double> watts = Wave(1000, 300, 0.55, 2000);
  const PowerShape shape = ShapeOf(watts, kShapeInterval, {.band = {0.5, 0.6}});
  EXPECT_TRUE(shape.band_resolved);
  EXPECT_GT(shape.band_rms_watts, 0);
  const PowerShape narrow = ShapeOf(watts, kShapeInterval, {.band = {0.5, 0.599}});
  EXPECT_FALSE(narrow.band_resolved);
  EXPECT_EQ(narrow.band_rms_watts, 0);
  EXPECT_EQ(narrow.strongest_hz, 0);
  EXPECT_EQ(narrow.rms_watts, shape.rms_watts);
}

TEST(PowerLimitsTest, WhatIsNotResolvedIsNeitherKeptNorBroken) {
  const auto verdict = [](const PowerLimits& limits, const PowerShape& shape) {
    return limits.Verdict(shape);
  };
  PowerShape shape = ShapeOf(Wave(10, 1, 1, 100), kShapeInterval, {});  // No ramp over 1 s.
  EXPECT_EQ(verdict({.ramp_watts_per_second = 1e9}, {}), LimitVerdict::kNotResolved);
  EXPECT_EQ(verdict({.ramp_watts_per_second = 1e9}, shape), LimitVerdict::kNotResolved);
  EXPECT_EQ(verdict({.band_rms_watts = 1e9}, shape), LimitVerdict::kKept);
  // One limit that is broken for sure is enough.
  const PowerLimits both = {.ramp_watts_per_second = 1e9, .band_rms_watts = 0};
  EXPECT_EQ(verdict(both, shape), LimitVerdict::kBroken);
  shape.band_resolved = false;
  EXPECT_EQ(verdict(both, shape), LimitVerdict::kNotResolved);
  EXPECT_EQ(verdict({.band_rms_watts = 1e9}, shape), LimitVerdict::kNotResolved);
  shape.ramp_1s = PowerRamp{3, 5};
  EXPECT_EQ(verdict({.ramp_watts_per_second = 4, .band_rms_watts = 1e9}, shape),
            LimitVerdict::kBroken);
}

TEST(PowerLimitsTest, WhatIsNotStatedIsNotKept) {
  PowerLimits limits;
  limits.ramp_watts_per_second = 1e9;
  EXPECT_FALSE(limits.KeptBy({}));
  PowerShape shape = ShapeOf(Wave(10, 1, 1, 100), kShapeInterval, {});
  EXPECT_FALSE(limits.KeptBy(shape));  // Too short for a second's ramp.
  shape.ramp_1s = PowerRamp{3, 5};
  EXPECT_TRUE(limits.KeptBy(shape));
  limits.ramp_watts_per_second = 4;
  EXPECT_FALSE(limits.KeptBy(shape));
}

}  // namespace
}  // namespace perseus::emulate
