// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "measure/profile_fit.h"

namespace perseus::measure {
namespace {

struct Shape {
  int time_most_mhz = 5000;   // Times do not fall above this clock,
  int power_most_mhz = 5000;  // powers do not rise above this one.
  double noise = 0.001;
};

std::vector<Estimate> RowsOf(const Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Estimate> rows;
  for (int mhz = 900; mhz <= 1410; mhz += 15) {
    for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
      const double time_x = std::min(mhz, shape.time_most_mhz) / 1410.0;
      const double power_x = std::min(mhz, shape.power_most_mhz) / 1410.0;
      Estimate row;
      row.kind = {type, 0};
      row.mhz = mhz;
      row.seconds = (0.2 + 0.8 / time_x) * 0.05 * (1 + shape.noise * normal(random));
      row.joules =
          row.seconds * (90 + 330 * std::pow(power_x, 3)) * (1 + 3 * shape.noise * normal(random));
      rows.push_back(row);
    }
  }
  return rows;
}

TEST(ThrottledClocks, AreThoseAboveTheClockThatTheCardKeeps) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const std::vector<int> clocks =
        ThrottledClocks(RowsOf({.time_most_mhz = 1320, .power_most_mhz = 1320}, seed));
    ASSERT_FALSE(clocks.empty()) << seed;
    EXPECT_EQ(clocks.front(), 1410);
    EXPECT_NEAR(clocks.back(), 1335, 30) << seed;
  }
}

TEST(ThrottledClocks, NoneWhereTheCardFollows) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(ThrottledClocks(RowsOf({}, seed)).empty()) << seed;
    EXPECT_TRUE(ThrottledClocks(RowsOf({.noise = 0.01}, seed)).empty()) << seed;
  }
}

// It waits for its memory, at more and more watts.
TEST(ThrottledClocks, NoneWhereOnlyTimesAreAlike) {
  EXPECT_TRUE(ThrottledClocks(RowsOf({.time_most_mhz = 1250})).empty());
}

TEST(ThrottledClocks, NoneOfTooFewClocks) {
  EXPECT_TRUE(ThrottledClocks({}).empty());
  std::vector<Estimate> rows = RowsOf({.time_most_mhz = 1320, .power_most_mhz = 1320});
  std::erase_if(rows, [](const Estimate& row) { return row.mhz < 1350; });
  EXPECT_TRUE(ThrottledClocks(rows).empty());
}

}  // namespace
}  // namespace perseus::measure
