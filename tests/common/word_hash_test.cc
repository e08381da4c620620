// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/word_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace perseus {
namespace {

TEST(WordHashTest, IsSplitMix64) {
  // The first outputs of the published generator for the seeds 0 and 1234567.
  EXPECT_EQ(WordHash(0).With(0).value(), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(WordHash(1234567).With(0).value(), 6457827717110365317U);
  EXPECT_EQ(WordHash(1234567 ^ 5).With(5).value(), 6457827717110365317U);
  EXPECT_NE(WordHash(0).With(1).With(2).value(), WordHash(0).With(2).With(1).value());
}

TEST(WordHashTest, DrawsHaveMeanZeroVarianceOneAndBounds) {
  constexpr int kDraws = 100000;
  double sum = 0;
  double squares = 0;
  double most = 0;
  double share = 0;
  for (int i = 0; i < kDraws; ++i) {
    const WordHash hash = WordHash(42).With(i);
    const double z = hash.StandardDraw();
    sum += z;
    squares += z * z;
    most = std::max(most, std::fabs(z));
    share += hash.Share();
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_LT(most, 2 * std::sqrt(3.0));
  EXPECT_GT(most, 3);
  EXPECT_NEAR(share / kDraws, 0.5, 0.005);
}

TEST(WordHashTest, DrawAddsTheFourWords) {
  const WordHash hash = WordHash(9).With(8);
  double sum = -2;
  for (int word = 0; word < 4; ++word) {
    sum += (static_cast<double>((hash.value() >> (16 * word)) & 0xFFFF) + 0.5) / 65536;
  }
  EXPECT_DOUBLE_EQ(hash.StandardDraw(), std::sqrt(3.0) * sum);
}

}  // namespace
}  // namespace perseus
