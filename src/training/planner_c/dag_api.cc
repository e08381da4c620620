// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "perseus/planner.h"
#include "perseus/planner_c.h"
#include "perseus/progress.h"
#include "plan/told.h"
#include "planner_c/boundary.h"
#include "planner_c/dag_pipeline.h"
#include "planner_c/handles.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of C.
struct perseus_dag_solution {
  perseus::Planner planner;
  perseus::planner_c::FrontierColumns frontier;
  std::vector<int> computation_of;  // [operation]
};

namespace perseus::planner_c {
namespace {

// Whether the planner may decide how coarse the slopes of a large graph are: it scales them by the
// mean power, which must be one.
bool HasPower(const CostedPipeline& pipeline) {
  double cost = 0;
  double time = 0;
  for (const int table : pipeline.table_of) {
    cost += pipeline.tables[table].baseline.energy_joules;
    time += pipeline.tables[table].baseline.time_seconds;
  }
  return cost > 0 && time > 0 && std::isfinite(cost / time);
}

Result<std::unique_ptr<perseus_dag_solution>> SolveDag(const perseus_dag& dag,
                                                       const Progress& progress) {
  Result<DagPipeline> made = MakeDagPipeline(dag);
  if (!made) return tl::unexpected(made.error());
  PlannerOptions options;
  options.costs_are_energies = false;
  options.slope_quantum_watts = HasPower(made->pipeline) ? std::nullopt : std::optional(0.0);
  options.progress = ToldAs(progress);
  Result<Planner> planner = Planner::Create(std::move(made->pipeline), options);
  if (!planner && planner.error().code == ErrorCode::kOverflow) {
    return MakeError(ErrorCode::kOverflow, "the graph is too large: " + planner.error().message);
  }
  if (!planner) return tl::unexpected(planner.error());
  FrontierColumns frontier(*planner);
  return std::make_unique<perseus_dag_solution>(perseus_dag_solution{
      *std::move(planner), std::move(frontier), std::move(made->computation_of)});
}

Result<Plan> Choose(const perseus_dag_solution& solution, double deadline, double effort,
                    const Progress& progress) {
  // Later than T* nothing is saved, however late.
  const bool any_time = std::isinf(deadline) && deadline > 0;
  const double asked = any_time ? solution.frontier.scalars.tstar_seconds : deadline;
  const Result<double> time = solution.planner.TargetSeconds({PlanTarget::Kind::kSeconds, asked});
  if (!time) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no choice of options ends by {}: the fastest takes {}", deadline,
                                 solution.frontier.scalars.fastest_seconds));
  }
  const ProgressFunction caller = ToldAs(progress);
  plan::Told told(caller);
  Result<Plan> plan =
      solution.planner.PlanFor(*time, {.effort = effort, .progress = told.Function()});
  if (told.stopped())
    return MakeError(ErrorCode::kCancelled, "the search for options was cancelled");
  return plan;
}

}  // namespace
}  // namespace perseus::planner_c

namespace pc = perseus::planner_c;

perseus_status perseus_dag_solve(const perseus_dag* dag, perseus_planner_progress progress,
                                 void* user, perseus_dag_solution** solution, char** message) {
  return pc::Guarded(message, [&] {
    if (solution == nullptr) return pc::FailInvalid("there is no place for the solution", message);
    *solution = nullptr;
    const auto known = perseus::c_boundary::CopyIn("perseus_dag", dag);
    if (!known) return pc::Fail(known.error(), message);
    return pc::Give(pc::SolveDag(*known, {progress, user}), solution, message);
  });
}

void perseus_dag_free(perseus_dag_solution* solution) { delete solution; }

perseus_status perseus_dag_frontier(const perseus_dag_solution* solution,
                                    perseus_frontier* frontier, char** message) {
  return pc::Guarded(message, [&] {
    if (solution == nullptr) return pc::FailInvalid("there is no solution", message);
    return pc::Give("perseus_frontier", solution->frontier.Frontier(), frontier, message);
  });
}

perseus_status perseus_dag_choose(const perseus_dag_solution* solution, double deadline,
                                  double effort, perseus_planner_progress progress, void* user,
                                  int32_t* options, perseus_dag_choice* choice, char** message) {
  return pc::Guarded(message, [&] {
    if (solution == nullptr || options == nullptr) {
      return pc::FailInvalid("there is no solution, or no place for the options", message);
    }
    const auto plan = pc::Choose(*solution, deadline, effort, {progress, user});
    if (!plan) return pc::Fail(plan.error(), message);
    if (choice != nullptr) {
      perseus_dag_choice known = {};
      known.time = plan->iteration_time_seconds;
      known.cost = plan->energy_joules;
      known.lower_bound = plan->lower_bound_joules;
      const auto given = pc::Give("perseus_dag_choice", known, choice, message);
      if (given != PERSEUS_OK) return given;
    }
    for (std::size_t i = 0; i < solution->computation_of.size(); ++i) {
      options[i] = plan->options[solution->computation_of[i]].knob;
    }
    return PERSEUS_OK;
  });
}
