// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/noise.h"

#include <algorithm>
#include <cstddef>

namespace perseus::emulate {

FixedNoise DrawFixedNoise(const CostedPipeline& pipeline, const EmulationSpec& spec) {
  FixedNoise noise;
  noise.stage.assign(pipeline.dag.num_stages, 1.0);
  const WordHash seed(spec.seed);
  if (spec.noise.per_stage > 0) {
    for (int stage = 0; stage < pipeline.dag.num_stages; ++stage) {
      noise.stage[stage] =
          1 + spec.noise.per_stage * seed.With(kStageNoise).With(stage).StandardDraw();
    }
  }
  if (spec.noise.per_gpu > 0) {
    noise.gpus_of_rank.reserve(static_cast<std::size_t>(spec.pipelines) * pipeline.dag.num_ranks);
    for (int p = 0; p < spec.pipelines; ++p) {
      for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
        const WordHash prefix = seed.With(kGpuNoise).With(p).With(rank);
        GpuNoise gpus = {.slowest = 0, .mean = 0};
        for (int gpu = 0; gpu < pipeline.tensor_parallel; ++gpu) {
          const double draw = 1 + spec.noise.per_gpu * prefix.With(gpu).StandardDraw();
          gpus.slowest = std::max(gpus.slowest, draw);
          gpus.mean += draw;
        }
        gpus.mean /= pipeline.tensor_parallel;
        noise.gpus_of_rank.push_back(gpus);
      }
    }
  }
  return noise;
}

}  // namespace perseus::emulate
