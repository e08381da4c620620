// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/cost_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace perseus {
namespace {

TEST(CostCurveTest, RecoversACurveInAnyUnits) {
  for (const double second : {1e-6, 1.0, 1e3}) {
    for (const double joule : {1e-6, 1.0, 1e6}) {
      std::vector<TimeEnergy> points;
      for (int i = 0; i < 20; ++i) {
        const double t = 1 + 0.1 * i;
        points.push_back({t * second, (7 * std::exp(-1.5 * t) + 3) * joule});
      }
      const auto fit = FitExponential(points);
      ASSERT_TRUE(fit.has_value());
      EXPECT_GT(fit->r_squared, 1 - 1e-9);
      EXPECT_NEAR(fit->b * second, -1.5, 1e-4);
      EXPECT_NEAR(fit->c / joule, 3, 1e-4);
      EXPECT_NEAR(fit->a * std::exp(-fit->b * fit->origin_seconds) / joule, 7, 1e-3);
      for (const TimeEnergy& p : points) {
        EXPECT_NEAR((*fit)(p.time_seconds) / joule, p.energy_joules / joule, 1e-6);
      }
    }
  }
}

TEST(CostCurveTest, DegenerateInput) {
  const auto fit = [](const std::vector<TimeEnergy>& points) { return *FitExponential(points); };
  EXPECT_EQ(fit({{1, 5}})(1), 5);
  EXPECT_EQ(fit({{1, 5}}).r_squared, 1);
  EXPECT_EQ(fit({{1, 5}, {2, 5}, {3, 5}})(2), 5);
  EXPECT_DOUBLE_EQ(fit({{1, 4}, {1, 6}})(1), 5);
  EXPECT_EQ(fit({{1, 4}, {1, 6}}).r_squared, 0);
  const ExponentialFit two = fit({{1, 6}, {2, 4}});
  EXPECT_NEAR(two(1), 6, 1e-12);
  EXPECT_NEAR(two(2), 4, 1e-12);
  const ExponentialFit rising = fit({{1, 4}, {2, 5}, {3, 6}});
  EXPECT_EQ(rising.a, 0);
  EXPECT_DOUBLE_EQ(rising(-1e9), 5);
  EXPECT_FALSE(FitExponential({}).has_value());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(FitExponential(std::vector<TimeEnergy>{{nan, 1}}).has_value());
  EXPECT_FALSE(FitExponential(std::vector<TimeEnergy>{{1, HUGE_VAL}}).has_value());
}

RC_GTEST_PROP(CostCurveProperty, ConvexFallingAndNoWorseThanAConstant, ()) {
  const double time_unit = std::pow(10.0, *rc::gen::inRange(-12, 7));
  const double energy_unit = std::pow(10.0, *rc::gen::inRange(-12, 7));
  const auto offset = *rc::gen::inRange(0, 1'000'000);
  const auto raw = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 100), rc::gen::inRange(0, 100))));
  std::vector<TimeEnergy> points;
  double mean = 0;
  for (const auto& [time, energy] : raw) {
    points.push_back({(offset + time) * time_unit, energy * energy_unit});
    mean += energy * energy_unit / static_cast<double>(raw.size());
  }
  const auto fit = FitExponential(points);
  RC_ASSERT(fit.has_value());
  RC_ASSERT(fit->a >= 0);
  RC_ASSERT(fit->b <= 0);
  RC_ASSERT(fit->r_squared >= 0);
  RC_ASSERT(fit->r_squared <= 1);
  double squares = 0;
  double variance = 0;
  for (const TimeEnergy& p : points) {
    const double energy = (*fit)(p.time_seconds);
    RC_ASSERT(std::isfinite(energy));
    squares += (p.energy_joules - energy) * (p.energy_joules - energy);
    variance += (p.energy_joules - mean) * (p.energy_joules - mean);
  }
  RC_ASSERT(squares <= variance * (1 + 1e-9) + 1e-12 * energy_unit * energy_unit);
}

}  // namespace
}  // namespace perseus
