// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
namespace {

TEST(FixedNoiseTest, IsOneUnlessAskedFor) {
  const model::FixedNoise noise =
      model::DrawFixedNoise(emulator_testing::TinyPipeline(2), {}, 1, 0);
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
  const model::FixedNoise noise =
      model::DrawFixedNoise(pipeline, spec.noise, spec.pipelines, spec.seed);
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

// The factors of `count` computations of each of two ranks, in turn.
std::vector<double> Factors(const TimeNoise& noise, std::uint64_t seed, int count) {
  model::IterationNoise drawn(noise, 2);
  drawn.Begin(seed, 3, 5);
  std::vector<double> factors;
  for (int i = 0; i < 2 * count; ++i) factors.push_back(drawn.Of(i, i % 2));
  return factors;
}

TEST(IterationNoiseTest, DrawsAsEverWithoutCorrelationAndRanks) {
  const std::vector<double> factors = Factors({.per_computation = 0.1}, 11, 8);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const WordHash word = WordHash(11).With(1).With(3).With(5).With(i);
    EXPECT_EQ(factors[i], 1 + 0.1 * word.StandardDraw());
  }
  EXPECT_EQ(Factors({}, 11, 2), (std::vector<double>{1, 1, 1, 1}));
}

TEST(IterationNoiseTest, ARankHasAFactorOfItsOwn) {
  const std::vector<double> factors = Factors({.per_rank = 0.1}, 11, 4);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const WordHash word = WordHash(11).With(6).With(3).With(5).With(i % 2);
    EXPECT_EQ(factors[i], 1 + 0.1 * word.StandardDraw());
  }
  const std::vector<double> alone = Factors({.per_computation = 0.05}, 11, 4);
  const std::vector<double> both = Factors({.per_computation = 0.05, .per_rank = 0.1}, 11, 4);
  for (std::size_t i = 0; i < both.size(); ++i) {
    EXPECT_DOUBLE_EQ(both[i], alone[i] * factors[i]);
  }
}

TEST(IterationNoiseTest, DrawsFollowTheOneBeforeOnTheRank) {
  const double correlation = 0.8;
  const std::vector<double> fresh = Factors({.per_computation = 0.1}, 11, 6);
  const std::vector<double> factors =
      Factors({.per_computation = 0.1, .correlation = correlation}, 11, 6);
  EXPECT_EQ(factors[0], fresh[0]);
  EXPECT_EQ(factors[1], fresh[1]);  // Another rank.
  for (std::size_t i = 2; i < factors.size(); ++i) {
    EXPECT_NEAR(factors[i] - 1, 0.8 * (factors[i - 2] - 1) + 0.6 * (fresh[i] - 1), 1e-12);
  }
}

TEST(IterationNoiseTest, RareComputationsTakeMuchLongerAndTheMeanStays) {
  constexpr double kLength = 0.05;
  constexpr double kShare = 0.02;
  constexpr int kCount = 400'000;
  const std::vector<double> factors =
      Factors({.rare_length = kLength, .rare_share = kShare}, 2, kCount);
  double sum = 0;
  double longer = 0;
  double squares = 0;
  int count = 0;
  for (const double factor : factors) {
    sum += factor - 1;
    const double off = factor - 1 + kLength * kShare;
    EXPECT_LT(off, 3 * kLength + 1e-12);
    if (off < 1e-9) continue;
    ++count;
    longer += off;
    squares += off * off;
  }
  EXPECT_NEAR(sum / (2 * kCount), 0, 2e-5);
  EXPECT_NEAR(count / (2.0 * kCount), kShare, 1e-3);
  EXPECT_NEAR(longer / count, kLength, 2e-3);
  EXPECT_NEAR(squares / count, model::kRareSecondMoment * kLength * kLength, 3e-4);
  // They come beside what else is drawn, and change nothing of it.
  const std::vector<double> alone = Factors({.per_computation = 0.01}, 2, 50);
  const std::vector<double> both =
      Factors({.per_computation = 0.01, .rare_length = kLength, .rare_share = kShare}, 2, 50);
  for (std::size_t i = 0; i < both.size(); ++i) {
    EXPECT_NEAR(both[i], alone[i] + factors[i] - 1, 1e-15);
  }
}

TEST(IterationNoiseTest, CorrelationKeepsSpreadAndCutOff) {
  constexpr double kCorrelation = 0.9;
  constexpr int kCount = 200'000;
  const std::vector<double> factors =
      Factors({.per_computation = 0.1, .correlation = kCorrelation}, 2, kCount);
  double sum = 0;
  double squares = 0;
  double products = 0;
  for (int i = 0; i < 2 * kCount; ++i) {
    const double draw = (factors[i] - 1) / 0.1;
    EXPECT_LE(std::abs(draw), 3.4642);
    sum += draw;
    squares += draw * draw;
    if (i >= 2) products += draw * (factors[i - 2] - 1) / 0.1;
  }
  EXPECT_NEAR(sum / (2 * kCount), 0, 0.05);
  EXPECT_NEAR(squares / (2 * kCount), 1, 0.02);
  EXPECT_NEAR(products / squares, kCorrelation, 0.01);
}

}  // namespace
}  // namespace perseus::emulate
