// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_SAMPLES_H_
#define PERSEUS_ROBUST_REPLAY_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"

namespace perseus::robust {

// The noise of some iterations of one pipeline each, drawn once for a whole
// search: a lane is one iteration. Pipelines of one job are neighbours.
struct Samples {
  int lanes = 1;
  int pipelines = 1;           // lanes / pipelines jobs.
  std::vector<double> time;    // [computation x lanes + lane]: factor of time.
  std::vector<double> energy;  // [rank x lanes + lane]: further factor of energy.
  std::vector<double> weight;  // [computation]: mean of both factors' product.
  // Jobs are in groups whose noise differs. The time of all is that of the group for which it is
  // most, after its mean is multiplied with its scale.
  std::vector<int> group;     // [job]
  std::vector<int> jobs_of;   // [group]
  std::vector<double> scale;  // [group]

  int jobs() const { return lanes / pipelines; }
  int groups() const { return static_cast<int>(scale.size()); }
  // `sums`: [group], of the times of its jobs, all without `end_delay`. With one group and a scale
  // of 1 that is the mean.
  double Seconds(std::span<const double> sums, double end_delay) const;
  // [job]: what its longest path counts, with times of jobs, in means over jobs.
  std::vector<double> PathWeights(std::span<const double> seconds) const;

  const double* TimeOf(int computation) const {
    return time.data() + static_cast<std::size_t>(computation) * lanes;
  }
  const double* EnergyOf(int rank) const {
    return energy.data() + static_cast<std::size_t>(rank) * lanes;
  }
};

// Without noise there is one lane, whatever `lanes` is. Else `lanes` is rounded up
// to whole jobs and to a multiple of 8. A job has 16 pipelines at most, and fewer where one
// would take more than four times as many lanes.
Samples DrawSamples(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                    int lanes, std::uint64_t seed);

// The same with jobs of each noise, which may differ in what is drawn anew in each iteration. A
// noise that is none has one job, since all would be alike.
Samples DrawMixedSamples(const CostedPipeline& pipeline, std::span<const TimeNoise> noises,
                         int pipelines, int lanes, std::uint64_t seed);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_SAMPLES_H_
