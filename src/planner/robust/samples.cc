// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/word_hash.h"
#include "model/iteration_energy.h"
#include "model/noise.h"
#include "model/saving_interval.h"

namespace perseus::robust {

OptionTable::OptionTable(const CostedPipeline& pipeline)
    : pipeline_(pipeline), num_knobs_(pipeline.knobs.size()) {
  cells_.reserve(pipeline.tables.size() * num_knobs_);
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption* option : model::NearestOptions(pipeline, table)) {
      const CostOption& taken = option != nullptr ? *option : table.all_options.front();
      cells_.push_back(
          {{taken.time_seconds, EffectiveEnergy(table, taken)}, /*counts=*/option != nullptr});
      as_measured_.push_back(
          {taken.time_seconds, model::TimeErrorBesideBaseline(pipeline, table, taken.knob)});
    }
  }
}

void OptionTable::SetGuard(double errors) {
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    const Measured& measured = as_measured_[cell];
    cells_[cell].option.seconds = measured.seconds * (1 + errors * measured.error);
  }
}

namespace {

// Kinds of draws, as the first word of a hash.
constexpr std::uint64_t kComputationDraw = 1;
constexpr std::uint64_t kStageDraw = 2;
constexpr std::uint64_t kGpuDraw = 3;
constexpr std::uint64_t kRankDraw = 4;
constexpr int kBlock = 8;
constexpr int kMostLanePipelines = 16;
constexpr int kMostTimesLanes = 4;

// [job]: one for each noise that is none, the rest in turn among the others.
std::vector<int> GroupsOf(std::span<const TimeNoise> noises, int jobs) {
  std::vector<int> once;
  std::vector<int> often;
  for (int k = 0; k < static_cast<int>(noises.size()); ++k) {
    (noises[k].any() ? often : once).push_back(k);
  }
  std::vector<int> groups;
  groups.reserve(jobs);
  for (int job = 0; job < jobs; ++job) {
    // The last jobs are the single ones, where there is room beside the others.
    const int single = jobs - 1 - job;
    const bool is_single = often.empty() || (single < static_cast<int>(once.size()) &&
                                             job >= static_cast<int>(often.size()));
    groups.push_back(is_single ? once[single % once.size()] : often[job % often.size()]);
  }
  return groups;
}

}  // namespace

double Samples::Seconds(std::span<const double> sums, double end_delay) const {
  double most = 0;
  for (int k = 0; k < groups(); ++k) {
    if (jobs_of[k] > 0) most = std::max(most, scale[k] * (sums[k] / jobs_of[k] + end_delay));
  }
  return most;
}

std::vector<double> Samples::PathWeights(std::span<const double> seconds) const {
  // Groups that are nearly as late count, too: the latest changes with every move.
  constexpr double kNear = 3e-4;
  std::vector<double> weights(group.size(), 1.0);
  if (groups() < 2) return weights;
  std::vector<double> mean(scale.size(), 0.0);
  for (std::size_t job = 0; job < group.size(); ++job) {
    mean[group[job]] += scale[group[job]] * seconds[job] / jobs_of[group[job]];
  }
  const double most = *std::max_element(mean.begin(), mean.end());
  double sum = 0;
  for (double& each : mean) {
    each = std::exp((each - most) / (kNear * most));
    sum += each;
  }
  for (std::size_t job = 0; job < group.size(); ++job) {
    const int of = group[job];
    weights[job] = mean[of] / sum * static_cast<double>(group.size()) / jobs_of[of];
  }
  return weights;
}

Samples DrawSamples(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                    int lanes, std::uint64_t seed) {
  return DrawMixedSamples(pipeline, {&noise, 1}, pipelines, lanes, seed);
}

Samples DrawMixedSamples(const CostedPipeline& pipeline, std::span<const TimeNoise> noises,
                         int pipelines, int lanes, std::uint64_t seed) {
  const PipelineDag& dag = pipeline.dag;
  const TimeNoise& noise = noises.front();  // In what is drawn once they do not differ.
  const bool any =
      std::any_of(noises.begin(), noises.end(), [](const TimeNoise& each) { return each.any(); });
  Samples samples;
  if (any) {
    // Of very many pipelines some: memory is bounded, and trials know all. Fewer where a whole
    // number of jobs would take many more lanes than are wanted.
    samples.pipelines = std::clamp(pipelines, 1, kMostLanePipelines);
    const int most = std::max(kMostTimesLanes * lanes, kBlock);
    while (std::lcm(samples.pipelines, kBlock) > most) --samples.pipelines;
    const int step = std::lcm(samples.pipelines, kBlock);
    samples.lanes = (lanes + step - 1) / step * step;
  }
  samples.group = GroupsOf(noises, samples.jobs());
  samples.scale.assign(noises.size(), 1.0);
  samples.jobs_of.assign(noises.size(), 0);
  for (const int group : samples.group) ++samples.jobs_of[group];
  const int count = samples.lanes;
  samples.time.assign(static_cast<std::size_t>(dag.size()) * count, 1.0);
  samples.energy.assign(static_cast<std::size_t>(dag.num_ranks) * count, 1.0);
  samples.weight.assign(dag.size(), 1.0);
  if (!any) return samples;

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
  std::vector<model::IterationNoise> of_groups;
  of_groups.reserve(noises.size());
  for (const TimeNoise& each : noises) of_groups.emplace_back(each, dag.num_ranks);
  for (int lane = 0; lane < count; ++lane) {
    const int group = samples.group[lane / samples.pipelines];
    if (noises[group].each_iteration()) {
      model::IterationNoise& drawn = of_groups[group];
      drawn.Begin(root.With(kComputationDraw).With(lane), root.With(kRankDraw).With(lane));
      for (int i = 0; i < dag.size(); ++i) {
        samples.time[static_cast<std::size_t>(i) * count + lane] =
            drawn.Of(i, dag.computations[i].rank);
      }
    }
  }
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    double* const row = samples.time.data() + static_cast<std::size_t>(i) * count;
    double sum = 0;
    for (int lane = 0; lane < count; ++lane) {
      const std::size_t of_rank = static_cast<std::size_t>(computation.rank) * count + lane;
      double factor = slowest[of_rank] * row[lane];
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
