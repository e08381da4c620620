// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_SAMPLES_H_
#define PERSEUS_ROBUST_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::robust {

// [computation].
inline std::vector<int> KnobsOf(const std::vector<CostOption>& options) {
  std::vector<int> knobs;
  knobs.reserve(options.size());
  for (const CostOption& option : options) knobs.push_back(option.knob);
  return knobs;
}

// The options of all computations at one knob each; empty where one has no such option.
inline std::vector<CostOption> OptionsAt(const CostedPipeline& pipeline,
                                         const std::vector<int>& knobs) {
  std::vector<CostOption> options;
  options.reserve(knobs.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption* const option = plan::FindOption(pipeline.TableOf(i), knobs[i]);
    if (option == nullptr) return {};
    options.push_back(*option);
  }
  return options;
}

// Lanes of a search: fewer where there are very many computations.
inline int LanesFor(int computations) {
  constexpr int kMostCells = 1 << 22;
  constexpr int kMostLanes = 128;
  return std::clamp(kMostCells / std::max(1, computations), 8, kMostLanes);
}

// Times and energies of every computation at every knob, where searches look them up.
class OptionTable {
 public:
  struct Option {
    double seconds = 0;
    double effective_joules = 0;
  };

  // The pipeline must outlive it.
  explicit OptionTable(const CostedPipeline& pipeline);

  // From now on, times at other knobs than the baseline's are longer by so many of their standard
  // errors, beside the baseline (where the profile states errors). Energies stay.
  void SetGuard(double errors);

  // At a knob by model::NearestOptions(). Where there is none: as at the table's first.
  const Option& Of(int computation, int knob) const { return CellOf(computation, knob).option; }
  // While the knob before is still in effect. Where there is none: as at its own, which is what
  // the replay of a job takes.
  const Option& OfLate(int computation, int before, int own) const {
    const Cell& late = CellOf(computation, before);
    return late.counts ? late.option : CellOf(computation, own).option;
  }

 private:
  struct Cell {
    Option option;
    bool counts = true;
  };
  // Without a guard.
  struct Measured {
    double seconds = 0;
    double error = 0;  // Standard error beside the baseline, relative.
  };
  const Cell& CellOf(int computation, int knob) const {
    return cells_[static_cast<std::size_t>(pipeline_.table_of[computation]) * num_knobs_ + knob];
  }

  const CostedPipeline& pipeline_;
  std::size_t num_knobs_;
  std::vector<Cell> cells_;            // [table x knobs + knob]
  std::vector<Measured> as_measured_;  // The same.
};

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

#endif  // PERSEUS_ROBUST_SAMPLES_H_
