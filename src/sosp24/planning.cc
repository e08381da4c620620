// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "sosp24/planning.h"

#include <algorithm>
#include <utility>

#include "perseus/pipeline.h"
#include "perseus/planner.h"
#include "perseus/schedule.h"

namespace perseus::sosp24 {

Result<CostedPipeline> PipelineFor(const Profile& profile, int microbatches, int tensor_parallel,
                                   double blocking_power_watts) {
  const auto schedule = BuildSchedule(
      {.name = "1f1b", .num_stages = profile.num_stages, .num_microbatches = microbatches});
  if (!schedule) return tl::unexpected(schedule.error());
  auto dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  return CostPipeline(
      profile, *std::move(dag),
      {.blocking_power_watts = {blocking_power_watts}, .tensor_parallel = tensor_parallel});
}

double SavingPercent(double baseline_joules, double joules) {
  return baseline_joules > 0 ? 100 * (baseline_joules - joules) / baseline_joules : 0;
}

double EnergyUntil(const Plan& plan, double seconds, double waiting_watts) {
  return plan.energy_joules + waiting_watts * std::max(0.0, seconds - plan.iteration_time_seconds);
}

}  // namespace perseus::sosp24
