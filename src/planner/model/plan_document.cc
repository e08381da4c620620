// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/plan_document.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "model/iteration_energy.h"
#include "model/saving_interval.h"
#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/schedule.h"
#include "perseus/version.h"

namespace perseus {
inline namespace v0 {
namespace {

// Absolute paths would make the same plan differ from machine to machine.
std::string BaseName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

PlanBaseline MakeBaseline(const CostedPipeline& pipeline, const Plan& baseline) {
  PlanBaseline result;
  result.iteration_time_seconds = baseline.iteration_time_seconds;
  result.energy_joules = baseline.energy_joules;
  result.average_power_watts = baseline.average_power_watts;
  for (const CostTable& table : pipeline.tables) {
    BaselineCost cost;
    cost.stage = table.stage;
    cost.type = table.type;
    cost.fused_type = table.fused_type;
    cost.fused_stage = table.fused_stage;
    cost.knob = pipeline.knobs[table.baseline.knob];
    cost.duration_seconds = table.baseline.time_seconds;
    cost.energy_joules = table.baseline.energy_joules;
    cost.work = table.work;
    cost.fused_work = table.fused_work;
    result.costs.push_back(cost);
  }
  return result;
}

// Adds the power of waiting ranks, at the knobs that occur.
void AddWaiting(const CostedPipeline& pipeline, const Plan& plan, std::vector<PlannedRank>* ranks) {
  if (!pipeline.waiting_depends_on_clock()) return;
  const double gpus = std::max(pipeline.tensor_parallel, 1);
  std::vector<bool> occurs(pipeline.knobs.size());
  for (const CostTable& table : pipeline.tables) occurs[table.baseline.knob] = true;
  for (const CostOption& option : plan.options) occurs[option.knob] = true;
  for (std::size_t r = 0; r < ranks->size(); ++r) {
    occurs[*pipeline.WaitingKnob(static_cast<int>(r))] = true;
  }
  for (std::size_t r = 0; r < ranks->size(); ++r) {
    PlannedRank& rank = (*ranks)[r];
    if (plan.waiting == Waiting::kCheapest) {
      rank.waiting_knob = pipeline.knobs[*pipeline.WaitingKnob(static_cast<int>(r))];
    }
    for (std::size_t k = 0; k < occurs.size(); ++k) {
      if (!occurs[k]) continue;
      rank.waiting.push_back({pipeline.knobs[k], pipeline.rank_waiting_watts[r][k] / gpus});
    }
  }
}

std::vector<PlannedRank> MakeRanks(const CostedPipeline& pipeline, const Plan& plan) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> durations;
  durations.reserve(plan.options.size());
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(dag, durations);

  std::vector<PlannedRank> ranks(dag.num_ranks);
  for (int r = 0; r < dag.num_ranks; ++r) {
    ranks[r].blocking_power_watts =
        pipeline.rank_blocking_power_watts[r] / std::max(pipeline.tensor_parallel, 1);
    for (const int node : dag.rank_order[r]) {
      const Computation& computation = dag.computations[node];
      const CostOption& option = plan.options[node];
      ranks[r].computations.push_back({.id = computation.id,
                                       .fused = computation.fused,
                                       .knob = pipeline.knobs[option.knob],
                                       .start_seconds = timing.start_seconds[node],
                                       .duration_seconds = option.time_seconds,
                                       .energy_joules = option.energy_joules,
                                       .work = pipeline.TableOf(node).work,
                                       .fused_work = pipeline.TableOf(node).fused_work});
    }
  }
  AddWaiting(pipeline, plan, &ranks);
  return ranks;
}

}  // namespace

Result<PlanDocument> MakePlanDocument(const CostedPipeline& pipeline, const Plan& plan,
                                      const Plan& baseline, const BoundOrigin& bound,
                                      const PlanContext& context) {
  if (auto good = pipeline.dag.Validate(); !good) return tl::unexpected(good.error());
  if (auto good = CheckPlan(pipeline, plan); !good) return tl::unexpected(good.error());
  if (auto good = CheckPlan(pipeline, baseline); !good) return tl::unexpected(good.error());
  const PipelineDag& dag = pipeline.dag;
  PlanDocument document;
  document.generator_name = "perseus";
  document.generator_version = PERSEUS_VERSION_STRING;
  document.schedule = BaseName(dag.schedule_name);
  document.stages = dag.num_stages;
  document.virtual_stages = dag.num_stages / std::max(dag.num_ranks, 1);
  document.microbatches = dag.num_microbatches;
  document.tensor_parallel = pipeline.tensor_parallel;
  document.data_parallel = context.data_parallel;
  document.profile_source = BaseName(context.profile_source);
  document.profile_sha256 = context.profile_sha256;
  document.profile_modelled = pipeline.modelled;
  document.knobs_are_numbers = pipeline.knobs_are_numbers;
  static_cast<PlanFigures&>(document) = plan;
  if (!document.saving_interval) {
    document.saving_interval = model::IntervalOfSaving(pipeline, plan.options, plan.waiting);
  }
  if (const auto iteration = model::DefaultClockIterationOf(pipeline)) {
    document.default_clocks = model::AgainstDefaultClocks(*iteration, document);
  }
  document.baseline = MakeBaseline(pipeline, baseline);
  document.slope_quantum_watts = bound.slope_quantum_watts;
  document.exponential_fit = bound.exponential_fit;
  document.certified_error = bound.certified_error;
  document.constraints = context.constraints;
  document.fixed = pipeline.dag.fixed;
  if (std::any_of(pipeline.tables.begin(), pipeline.tables.end(),
                  [](const CostTable& table) { return table.split; })) {
    document.split_ratio = pipeline.split_ratio;
  }
  document.notes = context.notes;
  for (Note& note : document.notes) note.source = BaseName(note.source);
  document.ranks = MakeRanks(pipeline, plan);
  return document;
}

Work WorkOf(const PlanDocument& plan) {
  Work work;
  bool differs = false;
  for (const PlannedRank& rank : plan.ranks) {
    for (const PlannedComputation& computation : rank.computations) {
      work.Set(computation.id, computation.work);
      if (computation.fused) work.Set(*computation.fused, computation.fused_work);
      differs = differs || computation.work != 1 || computation.fused_work != 1;
    }
  }
  return differs ? work : Work();
}

Schedule ScheduleOf(const PlanDocument& plan) {
  Schedule schedule;
  schedule.name = plan.schedule;
  schedule.num_ranks = static_cast<int>(plan.ranks.size());
  schedule.num_stages = plan.stages;
  schedule.num_microbatches = plan.microbatches;
  for (const PlannedRank& rank : plan.ranks) {
    std::vector<ScheduleStep>& steps = schedule.ranks.emplace_back();
    steps.reserve(rank.computations.size());
    for (const PlannedComputation& computation : rank.computations) {
      steps.push_back({computation.id, computation.fused});
    }
  }
  return schedule;
}

}  // namespace v0
}  // namespace perseus
