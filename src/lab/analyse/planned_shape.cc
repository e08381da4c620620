// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "analyse/planned_shape.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "perseus/pipeline.h"
#include "perseus/schedule.h"

namespace perseus::analyse {

Result<PlannedShape> PlanShape(const JobShape& job, double effort) {
  const Result<Schedule> schedule = BuildSchedule(job.schedule);
  if (!schedule) return tl::unexpected(schedule.error());
  Result<PipelineDag> dag = BuildDag(*schedule, job.fixed);
  if (!dag) return tl::unexpected(dag.error());
  Result<CostedPipeline> pipeline = CostPipeline(*job.profile, *std::move(dag), job.costs);
  if (!pipeline) return tl::unexpected(pipeline.error());
  PlannerOptions options;
  options.slope_quantum_watts = {};  // Coarse where the pipeline is large.
  const Result<Planner> planner = Planner::Create(*std::move(pipeline), options);
  if (!planner) return tl::unexpected(planner.error());

  const Plan& baseline = planner->baseline();
  PlannedShape shape;
  shape.baseline_seconds = baseline.iteration_time_seconds;
  shape.baseline_joules = baseline.energy_joules;
  double busy_seconds = 0;
  for (const CostOption& option : baseline.options) busy_seconds += option.time_seconds;
  const double all_seconds = schedule->num_ranks * shape.baseline_seconds;
  shape.bubble_percent = 100 * (all_seconds - busy_seconds) / all_seconds;
  Result<Plan> plan = planner->PlanFor(shape.baseline_seconds, {.effort = effort});
  if (!plan) return tl::unexpected(plan.error());
  shape.plan = *std::move(plan);
  return shape;
}

Result<void> CheckAnalysis(const JobShape& job, double effort) {
  if (job.profile == nullptr || job.profile->num_stages < 1) {
    return InvalidInput("the job has no profile; give one with at least one stage");
  }
  if (!(effort > 0) || !std::isfinite(effort)) {
    return InvalidInput(fmt::format("the effort is {}; expected a number > 0", effort));
  }
  return {};
}

}  // namespace perseus::analyse
