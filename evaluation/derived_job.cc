// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/derived_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "evaluation/planning.h"
#include "perseus/profile.h"

namespace perseus::sosp24 {
namespace {

// Plans along the curve of Figure 9, evenly spaced from T_min to T*.
constexpr int kCurvePlans = 12;

// What a computation costs at a clock, also at one that no plan of ours takes.
std::optional<CostOption> OptionAt(const CostedPipeline& pipeline, int computation, double clock) {
  for (const CostOption& option : pipeline.TableOf(computation).all_options) {
    if (pipeline.knobs[option.knob].number == clock) return option;
  }
  return std::nullopt;
}

}  // namespace

Result<DerivedJob> DerivedJob::Create(const Workload& workload, const std::string& profile_path,
                                      double blocking_power_watts) {
  Result<Profile> profile = ReadProfile(profile_path);
  if (!profile) return tl::unexpected(profile.error());
  if (profile->num_stages != workload.stages) {
    return InvalidInput(fmt::format("{}: the profile has {} stages, its name says {}", profile_path,
                                    profile->num_stages, workload.stages));
  }
  auto pipeline =
      PipelineFor(*profile, workload.microbatches, workload.tensor_parallel, blocking_power_watts);
  if (!pipeline) return tl::unexpected(pipeline.error());
  Result<Planner> planner = Planner::Create(*std::move(pipeline), {});
  if (!planner) {
    return MakeError(planner.error().code,
                     fmt::format("{}: {}", profile_path, planner.error().message));
  }
  return DerivedJob(workload, *std::move(planner));
}

Result<void> DerivedJob::FillPlans(const Sosp24Options& options, Sosp24Job* job) {
  const Plan& baseline = planner_.baseline();
  const double pipelines = workload_.data_parallel;
  job->has_derived = true;
  job->derived_baseline_seconds = baseline.iteration_time_seconds;
  job->derived_baseline_joules = pipelines * baseline.energy_joules;
  Result<Plan> ours = planner_.PlanFor(baseline.iteration_time_seconds,
                                       {.effort = kHeadlineEffort * options.effort});
  if (!ours) return tl::unexpected(ours.error());
  job->ours = *std::move(ours);
  job->ours_bound_percent = SavingPercent(baseline.energy_joules, job->ours.lower_bound_joules);
  plans_ = {job->ours};

  const Frontier& frontier = planner_.frontier();
  const double span = frontier.tstar_seconds - frontier.fastest_seconds;
  for (int i = 0; i < kCurvePlans; ++i) {
    const double seconds = i + 1 == kCurvePlans
                               ? frontier.tstar_seconds
                               : frontier.fastest_seconds + span * i / (kCurvePlans - 1);
    const Result<Plan> plan = planner_.PlanFor(seconds, {.effort = options.effort});
    if (!plan) return tl::unexpected(plan.error());
    job->ours_frontier.push_back({plan->iteration_time_seconds, pipelines * plan->energy_joules});
    plans_.push_back(*plan);
  }
  return {};
}

Result<double> DerivedJob::StragglerPercent(double slowdown, double effort) {
  const Plan& baseline = planner_.baseline();
  const double watts = planner_.pipeline().total_blocking_power_watts;
  const double until = slowdown * baseline.iteration_time_seconds;
  // Beyond T* the curve's last plan is the one for any time.
  if (until < planner_.frontier().tstar_seconds) {
    Result<Plan> plan = planner_.PlanFor(until, {.effort = effort});
    if (!plan) return tl::unexpected(plan.error());
    plans_.push_back(*std::move(plan));
  }
  const double baseline_joules = EnergyUntil(baseline, until, watts);
  double best = baseline_joules;
  for (const Plan& plan : plans_) {
    if (plan.iteration_time_seconds > until) continue;
    best = std::min(best, EnergyUntil(plan, until, watts));
  }
  return SavingPercent(baseline_joules, best);
}

std::optional<Plan> DerivedJob::PlanOf(const RankClocks& clocks) const {
  const CostedPipeline& pipeline = planner_.pipeline();
  const PipelineDag& dag = pipeline.dag;
  // Stages are whole groups of ranks; replicas and tensor-parallel GPUs of a
  // stage have the clocks of its first.
  const std::size_t group =
      static_cast<std::size_t>(workload_.data_parallel) * workload_.tensor_parallel;
  if (clocks.size() != group * dag.num_ranks) return std::nullopt;
  std::vector<CostOption> options(dag.size());
  for (int stage = 0; stage < dag.num_ranks; ++stage) {
    const auto chosen = ClocksOfComputations(dag, stage, clocks[stage * group]);
    if (!chosen) return std::nullopt;
    for (std::size_t position = 0; position < chosen->size(); ++position) {
      const int computation = dag.rank_order[stage][position];
      const auto option = OptionAt(pipeline, computation, (*chosen)[position]);
      if (!option) return std::nullopt;
      options[computation] = *option;
    }
  }
  Result<Plan> plan = planner_.Evaluate(std::move(options));
  if (!plan) return std::nullopt;
  return *std::move(plan);
}

}  // namespace perseus::sosp24
