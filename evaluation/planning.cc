// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/planning.h"

#include <algorithm>
#include <utility>

#include "perseus/job.h"

namespace perseus::sosp24 {

Result<CostedPipeline> PipelineFor(Profile profile, int microbatches, int tensor_parallel,
                                   double blocking_power_watts) {
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = microbatches;
  settings.tensor_parallel = tensor_parallel;
  settings.blocking_power_watts = {blocking_power_watts};
  Result<perseus::Job> job = perseus::Job::Make(std::move(profile), std::move(settings));
  if (!job) return tl::unexpected(job.error());
  return std::move(job->pipeline);
}

double SavingPercent(double baseline_joules, double joules) {
  return baseline_joules > 0 ? 100 * (baseline_joules - joules) / baseline_joules : 0;
}

double EnergyUntil(const Plan& plan, double seconds, double waiting_watts) {
  return plan.energy_joules + waiting_watts * std::max(0.0, seconds - plan.iteration_time_seconds);
}

}  // namespace perseus::sosp24
