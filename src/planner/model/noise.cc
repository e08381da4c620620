// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace perseus::model {

FixedNoise DrawFixedNoise(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                          std::uint64_t seed) {
  FixedNoise drawn;
  drawn.stage.assign(pipeline.dag.num_stages, 1.0);
  if (noise.per_stage > 0) {
    for (int stage = 0; stage < pipeline.dag.num_stages; ++stage) {
      const WordHash word = WordHash(seed).With(kStageNoise).With(stage);
      drawn.stage[stage] = 1 + noise.per_stage * word.StandardDraw();
    }
  }
  if (noise.per_gpu <= 0) return drawn;
  drawn.gpus_of_rank.reserve(static_cast<std::size_t>(pipelines) * pipeline.dag.num_ranks);
  for (int p = 0; p < pipelines; ++p) {
    for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
      const WordHash prefix = WordHash(seed).With(kGpuNoise).With(p).With(rank);
      GpuNoise gpus = {.slowest = 0, .mean = 0};
      for (int gpu = 0; gpu < pipeline.tensor_parallel; ++gpu) {
        const double draw = 1 + noise.per_gpu * prefix.With(gpu).StandardDraw();
        gpus.slowest = std::max(gpus.slowest, draw);
        gpus.mean += draw;
      }
      gpus.mean /= pipeline.tensor_parallel;
      drawn.gpus_of_rank.push_back(gpus);
    }
  }
  return drawn;
}

IterationNoise::IterationNoise(const TimeNoise& noise, int ranks)
    : noise_(noise),
      fresh_(std::sqrt(1 - noise.correlation * noise.correlation)),
      of_rank_(ranks, 1.0),
      last_(ranks, 0.0),
      has_last_(ranks, 0) {}

void IterationNoise::Begin(WordHash of_computations, WordHash of_ranks) {
  of_computations_ = of_computations;
  std::fill(has_last_.begin(), has_last_.end(), 0);
  if (noise_.per_rank <= 0) return;
  for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) {
    of_rank_[rank] = 1 + noise_.per_rank * of_ranks.With(rank).StandardDraw();
  }
}

// Cut off as every draw is.
double IterationNoise::Follow(int rank, double draw) {
  constexpr double kMostDraw = 2 * std::numbers::sqrt3;
  if (has_last_[rank] != 0) {
    draw = std::clamp(noise_.correlation * last_[rank] + fresh_ * draw, -kMostDraw, kMostDraw);
  }
  has_last_[rank] = 1;
  last_[rank] = draw;
  return draw;
}

}  // namespace perseus::model
