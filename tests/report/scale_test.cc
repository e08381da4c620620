// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace perseus::report {
namespace {

TEST(RoundTicksTest, AreRoundAndInside) {
  EXPECT_EQ(RoundTicks(0.93, 2.04, 6), (std::vector<double>{1, 1.2, 1.4, 1.6, 1.8, 2}));
  EXPECT_EQ(RoundTicks(-11, 11, 4), (std::vector<double>{-10, 0, 10}));
  EXPECT_EQ(RoundTicks(1e-7, 4e-7, 3), (std::vector<double>{1e-7, 2e-7, 3e-7, 4e-7}));
}

TEST(RoundTicksTest, OfNothingAreNone) {
  EXPECT_TRUE(RoundTicks(1, 1, 5).empty());
  EXPECT_TRUE(RoundTicks(2, 1, 5).empty());
  EXPECT_TRUE(RoundTicks(0, NAN, 5).empty());
}

TEST(TickDecimalsTest, AreAsManyAsTheStepNeeds) {
  EXPECT_EQ(TickDecimals({1, 2, 3}), 0);
  EXPECT_EQ(TickDecimals({0, 2.5, 5}), 1);
  EXPECT_EQ(TickDecimals({0.94, 0.96}), 2);
  EXPECT_EQ(TickDecimals({7}), 3);
}

TEST(ScaleTest, IsLinear) {
  const Scale scale{10, 20, 100, 0};
  EXPECT_EQ(scale(10), 100);
  EXPECT_EQ(scale(12.5), 75);
  EXPECT_EQ(scale(20), 0);
}

}  // namespace
}  // namespace perseus::report
