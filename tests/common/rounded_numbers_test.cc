// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/rounded_numbers.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace perseus {
namespace {

TEST(RoundedNumbersTest, UpIsNotLessButForRounding) {
  EXPECT_EQ(RoundedUp(0.42), "0.42");
  EXPECT_EQ(RoundedUp(0.1 + 0.2), "0.3");
  EXPECT_EQ(RoundedUp(8.71234561), "8.71235");
  EXPECT_EQ(RoundedUp(1234567.5), "1.23457e+06");
  std::mt19937 random(1);
  std::lognormal_distribution<double> values(0, 5);
  for (int round = 0; round < 1000; ++round) {
    const double value = values(random);
    const double up = std::stod(RoundedUp(value));
    EXPECT_TRUE(up >= value || SameButRounding(up, value)) << value;
    EXPECT_LE(up, value * (1 + 1e-5)) << value;
  }
}

TEST(RoundedNumbersTest, BelowIsToldFromTheLimit) {
  EXPECT_EQ(RoundedBelow(7, 7.5), "7");
  EXPECT_EQ(RoundedBelow(0.4199999, 0.42), "0.4199999");
  EXPECT_EQ(RoundedBelow(0.4199, 0.42), "0.4199");
}

TEST(RoundedNumbersTest, LastBitsAreTheSame) {
  EXPECT_TRUE(SameButRounding(0.1 + 0.2, 0.3));
  EXPECT_FALSE(SameButRounding(0.3 + 1e-9, 0.3));
}

}  // namespace
}  // namespace perseus
