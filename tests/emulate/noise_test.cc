// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
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

TEST(FixedNoiseTest, IsOneUnlessAskedFor) {
  const FixedNoise noise = DrawFixedNoise(emulator_testing::TinyPipeline(2), {});
  EXPECT_EQ(noise.stage, (std::vector<double>{1, 1}));
  EXPECT_TRUE(noise.gpus_of_rank.empty());
}

TEST(FixedNoiseTest, RankGoesAsItsSlowestGpu) {
  CostedPipeline pipeline = emulator_testing::TinyPipeline(2);
  pipeline.tensor_parallel = 3;
  EmulationSpec spec;
  spec.pipelines = 2;
  spec.seed = 11;
  spec.noise.per_gpu = 0.1;
  spec.noise.per_stage = 0.05;
  const FixedNoise noise = DrawFixedNoise(pipeline, spec);
  EXPECT_EQ(noise.stage[1], 1 + 0.05 * WordHash(11).With(2).With(1).StandardDraw());
  ASSERT_EQ(noise.gpus_of_rank.size(), 4);
  const WordHash prefix = WordHash(11).With(3).With(1).With(0);  // Pipeline 1, rank 0.
  double slowest = 0;
  double sum = 0;
  for (int gpu = 0; gpu < 3; ++gpu) {
    const double draw = 1 + 0.1 * prefix.With(gpu).StandardDraw();
    slowest = std::max(slowest, draw);
    sum += draw;
  }
  EXPECT_EQ(noise.gpus_of_rank[2].slowest, slowest);
  EXPECT_EQ(noise.gpus_of_rank[2].mean, sum / 3);
}

}  // namespace
}  // namespace perseus::emulate
