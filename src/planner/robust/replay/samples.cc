// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/samples.h"

#include <algorithm>
#include <numeric>

#include "common/word_hash.h"

namespace perseus::robust {
namespace {

// What is drawn, as the first word of a hash.
constexpr std::uint64_t kComputationDraw = 1;
constexpr std::uint64_t kStageDraw = 2;
constexpr std::uint64_t kGpuDraw = 3;
constexpr int kBlock = 8;
constexpr int kMostLanePipelines = 16;
constexpr int kMostTimesLanes = 4;

}  // namespace

Samples DrawSamples(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                    int lanes, std::uint64_t seed) {
  const PipelineDag& dag = pipeline.dag;
  Samples samples;
  if (noise.any()) {
    // Of very many pipelines some: memory is bounded, and trials know all. Fewer where a whole
    // number of jobs would take many more lanes than are wanted.
    samples.pipelines = std::clamp(pipelines, 1, kMostLanePipelines);
    const int most = std::max(kMostTimesLanes * lanes, kBlock);
    while (std::lcm(samples.pipelines, kBlock) > most) --samples.pipelines;
    const int step = std::lcm(samples.pipelines, kBlock);
    samples.lanes = (lanes + step - 1) / step * step;
  }
  const int count = samples.lanes;
  samples.time.assign(static_cast<std::size_t>(dag.size()) * count, 1.0);
  samples.energy.assign(static_cast<std::size_t>(dag.num_ranks) * count, 1.0);
  samples.weight.assign(dag.size(), 1.0);
  if (!noise.any()) return samples;

  const WordHash root(seed);
  std::vector<double> slowest(static_cast<std::size_t>(dag.num_ranks) * count, 1.0);
  if (noise.per_gpu > 0) {
    for (int rank = 0; rank < dag.num_ranks; ++rank) {
      for (int lane = 0; lane < count; ++lane) {
        double most = 0;
        double sum = 0;
        for (int gpu = 0; gpu < pipeline.tensor_parallel; ++gpu) {
          const double draw =
              1 +
              noise.per_gpu * root.With(kGpuDraw).With(lane).With(rank).With(gpu).StandardDraw();
          most = std::max(most, draw);
          sum += draw;
        }
        const std::size_t k = static_cast<std::size_t>(rank) * count + lane;
        slowest[k] = most;
        samples.energy[k] = sum / pipeline.tensor_parallel / most;
      }
    }
  }
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    double* const row = samples.time.data() + static_cast<std::size_t>(i) * count;
    double sum = 0;
    for (int lane = 0; lane < count; ++lane) {
      const std::size_t of_rank = static_cast<std::size_t>(computation.rank) * count + lane;
      double factor = slowest[of_rank];
      if (noise.per_computation > 0) {
        factor *= 1 + noise.per_computation *
                          root.With(kComputationDraw).With(lane).With(i).StandardDraw();
      }
      if (noise.per_stage > 0) {
        const int job = lane / samples.pipelines;
        factor *= 1 + noise.per_stage *
                          root.With(kStageDraw).With(job).With(computation.id.stage).StandardDraw();
      }
      row[lane] = factor;
      sum += factor * samples.energy[of_rank];
    }
    samples.weight[i] = sum / count;
  }
  return samples;
}

}  // namespace perseus::robust
