// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

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

}  // namespace
}  // namespace perseus::emulate
