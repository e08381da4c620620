// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "analyse/layer_costs.h"
#include "analyse/planned_shape.h"
#include "analyse/stage_parts.h"
#include "perseus/analysis.h"

namespace perseus {
inline namespace v0 {
namespace {

using analyse::PlannedShape;

constexpr double kSameSeconds = 1e-9;  // Relative.

double Imbalance(const Profile& profile) {
  double slowest = 0;
  double sum = 0;
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    const double seconds = analyse::PartSeconds(profile, {.stage = stage});
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  return slowest * profile.num_stages / sum;
}

Result<PartitionResult> Analyse(JobShape job, const Profile& profile, double effort) {
  job.profile = &profile;
  const Result<PlannedShape> planned = analyse::PlanShape(job, effort);
  if (!planned) return tl::unexpected(planned.error());
  PartitionResult result;
  result.imbalance = Imbalance(profile);
  result.baseline_seconds = planned->baseline_seconds;
  result.baseline_joules = planned->baseline_joules;
  result.iteration_time_seconds = planned->plan.iteration_time_seconds;
  result.energy_joules = planned->plan.energy_joules;
  result.saving_percent = planned->plan.saving_percent;
  return result;
}

// A row for a profile that was put together, or the reason why there is none.
Result<PartitionResult> AnalyseComposed(const JobShape& job, const Result<Profile>& composed,
                                        double effort) {
  if (composed) return Analyse(job, *composed, effort);
  PartitionResult result;
  result.why_not = composed.error().message;
  return result;
}

Result<PartitionResult> AnalyseBest(const JobShape& job, const std::vector<int>& layers,
                                    const PartitionResult& measured, double effort) {
  const auto costs = analyse::InferLayerCosts(*job.profile, layers);
  if (!costs) return tl::unexpected(costs.error());
  std::vector<int> best = analyse::BestPartition(*job.profile, *costs);
  const auto as_measured = [&] {
    PartitionResult same = measured;
    same.name = "best partition (as measured)";
    return same;
  };
  if (best == layers) return as_measured();
  Result<PartitionResult> result =
      AnalyseComposed(job, analyse::PartitionedProfile(*job.profile, *costs, best), effort);
  if (!result) return result;
  // With few microbatches a faster slowest stage may not make a faster pipeline.
  const double no_gain_seconds = (1 - kSameSeconds) * measured.baseline_seconds;
  if (result->why_not.empty() && result->baseline_seconds >= no_gain_seconds) {
    return as_measured();
  }
  result->name = "best partition";
  result->layers = std::move(best);
  return result;
}

}  // namespace

Result<std::vector<PartitionResult>> AnalysePartitions(const JobShape& job,
                                                       const std::vector<int>& layers,
                                                       double effort) {
  if (auto checked = analyse::CheckAnalysis(job, effort); !checked) {
    return tl::unexpected(checked.error());
  }
  std::vector<PartitionResult> results;
  auto measured = Analyse(job, *job.profile, effort);
  if (!measured) return tl::unexpected(measured.error());
  measured->name = "as measured";
  measured->layers = layers;
  results.push_back(*measured);
  if (!layers.empty()) {
    auto best = AnalyseBest(job, layers, *measured, effort);
    if (!best) return tl::unexpected(best.error());
    results.push_back(*std::move(best));
  }
  auto even = AnalyseComposed(job, analyse::EvenStages(*job.profile), effort);
  if (!even) return tl::unexpected(even.error());
  even->name = "perfectly even";
  results.push_back(*std::move(even));
  return results;
}

}  // namespace v0
}  // namespace perseus
