// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/checked_plan.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/planning/plan_check.h"
#include "cli/planning/plan_waiting.h"
#include "perseus/pipeline.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"

namespace perseus::cli {
namespace {

// Type and stage of a computation, then of what is fused with it (or -1), then
// the work of both.
using CostKey = std::tuple<int, int, int, int, double, double>;

CostKey KeyOf(const PlannedComputation& planned) {
  const ComputationId& id = planned.id;
  const std::optional<ComputationId>& fused = planned.fused;
  return {static_cast<int>(id.type), id.stage,     fused ? static_cast<int>(fused->type) : -1,
          fused ? fused->stage : -1, planned.work, planned.fused_work};
}

// Refuses a plan whose figures are not those of its computations.
Result<ExplainInput> MakeInput(const PlanDocument& plan, const std::string& path) {
  const Schedule schedule = ScheduleOf(plan);
  if (auto valid = ValidateSchedule(schedule); !valid) {
    return InvalidInput(fmt::format("{}: {}", path, valid.error().message));
  }
  if (auto good = CheckScheduleName(plan, schedule, path); !good) {
    return tl::unexpected(good.error());
  }
  const Result<PipelineDag> dag = BuildDag(schedule, plan.fixed);
  if (!dag) return InvalidInput(fmt::format("{}: {}", path, dag.error().message));
  std::map<CostKey, const BaselineCost*> costs;
  for (const BaselineCost& cost : plan.baseline.costs) {
    costs[{static_cast<int>(cost.type), cost.stage,
           cost.fused_type ? static_cast<int>(*cost.fused_type) : -1,
           cost.fused_type ? cost.fused_stage : -1, cost.work, cost.fused_work}] = &cost;
  }
  ExplainInput input;
  std::vector<const Knob*> baseline_knobs;
  std::vector<double> baseline_seconds;
  std::vector<double> seconds;
  const std::vector<Phase> phases = ComputationPhases(*dag);
  for (int node = 0; node < dag->size(); ++node) {
    const Computation& computation = dag->computations[node];
    const PlannedRank& rank = plan.ranks[computation.rank];
    const PlannedComputation& planned = rank.computations[computation.position];
    const auto cost = costs.find(KeyOf(planned));
    if (cost == costs.end()) {
      return InvalidInput(fmt::format(
          "{}: baseline.computations lacks {} of stage {}; write the plan again with 'perseus plan "
          "-o DIR'",
          path, TypeText(computation.id, computation.fused), computation.id.stage));
    }
    ExplainedComputation explained;
    explained.type = TypeText(computation.id, computation.fused);
    explained.stage = computation.id.stage;
    explained.phase = phases[node];
    explained.blocking_power_watts = rank.blocking_power_watts * plan.tensor_parallel;
    explained.baseline_seconds = cost->second->duration_seconds;
    explained.baseline_joules = cost->second->energy_joules;
    explained.seconds = planned.duration_seconds;
    explained.joules = planned.energy_joules;
    baseline_knobs.push_back(&cost->second->knob);
    baseline_seconds.push_back(explained.baseline_seconds);
    seconds.push_back(explained.seconds);
    input.computations.push_back(std::move(explained));
  }
  const Timing before = Replay(*dag, baseline_seconds);
  const Timing after = Replay(*dag, seconds);
  const std::vector<bool> critical_before = CriticalComputations(*dag, before);
  const std::vector<bool> critical_after = CriticalComputations(*dag, after);
  for (int node = 0; node < dag->size(); ++node) {
    input.computations[node].baseline_critical = critical_before[node];
    input.computations[node].critical = critical_after[node];
  }
  for (const PlannedRank& rank : plan.ranks) {
    input.total_blocking_power_watts += rank.blocking_power_watts * plan.tensor_parallel;
  }
  input.baseline_iteration_seconds = before.iteration_time_seconds;
  input.iteration_seconds = after.iteration_time_seconds;
  if (auto good = AddDearerWaiting(plan, *dag, baseline_knobs, before, after, path, &input);
      !good) {
    return tl::unexpected(good.error());
  }
  std::vector<std::vector<double>> start_seconds(plan.ranks.size());
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    for (const int node : dag->rank_order[rank]) {
      start_seconds[rank].push_back(after.start_seconds[node]);
    }
  }
  if (auto good = CheckOwnFigures(plan, input, start_seconds, path); !good) {
    return tl::unexpected(good.error());
  }
  return input;
}

}  // namespace

std::string TypeText(const ComputationId& id, const std::optional<ComputationId>& fused) {
  std::string text(ComputationTypeName(id.type));
  if (fused) text += fmt::format("+{}", ComputationTypeName(fused->type));
  return text;
}

std::string PlanPathOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::is_directory(path, error) ? (fs::path(path) / kPlanFileName).string() : path;
}

Result<CheckedPlan> ReadCheckedPlan(const std::string& path) {
  const std::string file = PlanPathOf(path);
  Result<PlanDocument> plan = ReadPlan(file);
  if (!plan) {
    Error fault = plan.error();
    if (fault.code == ErrorCode::kInvalidInput && ReadProfile(file)) {
      return InvalidInput(
          fmt::format("{0}: this is a profile; give the plan.json that 'perseus plan {0} ... -o "
                      "DIR' writes",
                      file));
    }
    if (fault.code == ErrorCode::kInvalidInput) {
      fault.message += "; is it a plan.json that perseus plan wrote?";
    }
    return tl::unexpected(std::move(fault));
  }
  Result<ExplainInput> computations = MakeInput(*plan, file);
  if (!computations) return tl::unexpected(computations.error());
  return CheckedPlan{*std::move(plan), *std::move(computations)};
}

}  // namespace perseus::cli
