// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_NOISE_H_
#define PERSEUS_MODEL_NOISE_H_

#include <cstdint>
#include <vector>

#include "common/word_hash.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"

namespace perseus::model {

// The first word of every hash says what is drawn (docs/explanation/emulation.md).
inline constexpr std::uint64_t kComputationNoise = 1;
inline constexpr std::uint64_t kStageNoise = 2;
inline constexpr std::uint64_t kGpuNoise = 3;
inline constexpr std::uint64_t kStragglerDraw = 4;
inline constexpr std::uint64_t kLatencyDraw = 5;

// What a rank's call of an iteration, by its number, draws its latency from.
inline WordHash LatencyDraws(std::uint64_t seed, int pipeline, std::int64_t iteration, int rank) {
  return WordHash(seed).With(kLatencyDraw).With(pipeline).With(iteration).With(rank);
}

// The noise of one rank's GPUs.
struct GpuNoise {
  double slowest = 1;  // The rank goes as this one.
  double mean = 1;
};

// What is drawn once for all iterations. Each is 1 where it is not asked for.
struct FixedNoise {
  std::vector<double> stage;           // [stage]
  std::vector<GpuNoise> gpus_of_rank;  // [pipeline x ranks + rank]; empty without noise per GPU.
};
FixedNoise DrawFixedNoise(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                          std::uint64_t seed);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_NOISE_H_
