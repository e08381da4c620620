// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/median.h"

#include <gtest/gtest.h>

#include <vector>

namespace perseus {
namespace {

TEST(Median, OfAnEvenNumberLiesBetweenTheTwoInTheMiddle) {
  std::vector<double> none;
  std::vector<float> odd = {9, 1, 3};
  std::vector<double> even = {9, 1, 3, 4};
  EXPECT_EQ(MedianOf(none), 0);
  EXPECT_EQ(MedianOf(odd), 3);
  EXPECT_EQ(MedianOf(even), 3.5);
}

TEST(Median, TheUpperOneIsAlwaysAValue) {
  EXPECT_EQ(UpperMedianOf({}), 0);
  EXPECT_EQ(UpperMedianOf({7}), 7);
  EXPECT_EQ(UpperMedianOf({9, 1, 3}), 3);
  EXPECT_EQ(UpperMedianOf({9, 1, 3, 4}), 4);
}

}  // namespace
}  // namespace perseus
