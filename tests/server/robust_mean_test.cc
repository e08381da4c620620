// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/detect/measured_savings.h"

namespace perseus::server {
namespace {

TEST(RobustMeanTest, StudentsQuantiles) {
  EXPECT_NEAR(StudentT95(1), 12.706, 1e-3);
  EXPECT_NEAR(StudentT95(10), 2.228, 1e-3);
  EXPECT_NEAR(StudentT95(11), 2.201, 1e-3);
  EXPECT_NEAR(StudentT95(30), 2.042, 1e-3);
  EXPECT_NEAR(StudentT95(1'000'000), 1.960, 1e-3);
}

TEST(RobustMeanTest, WildValuesDoNotMoveIt) {
  EXPECT_EQ(TrimmedMean({4}), 4);
  EXPECT_EQ(TrimmedMean({1, 4}), 2.5);
  EXPECT_EQ(TrimmedMean({1000, 2, 1}), 2);
  EXPECT_EQ(TrimmedMean({1, 2, 3, 4, 1e9, -1e9, 2, 4}), 2.75);
}

TEST(RobustMeanTest, FewValuesHaveStudentsInterval) {
  const MeanInterval interval = TrimmedInterval({1, 2, 3});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.half_width, 4.3027 / std::sqrt(3.0), 1e-9);
}

// By hand: of ten values one goes at either end. What is left has the mean 5.5; the Winsorised
// values are 2, 2, 3, ..., 9, 9 with the variance 64.5 / 9.
TEST(RobustMeanTest, OneWildValueOfTenIsLeftOut) {
  const MeanInterval interval = TrimmedInterval({1e9, 2, 3, 4, 5, 6, 7, 8, 9, -1e9});
  EXPECT_DOUBLE_EQ(interval.mean, 5.5);
  EXPECT_NEAR(interval.half_width, 2.3646 * std::sqrt(66.5 / 9 / 10) / 0.8, 1e-3);
}

}  // namespace
}  // namespace perseus::server
