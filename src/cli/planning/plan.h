// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_H_
#define PERSEUS_CLI_PLANNING_PLAN_H_

#include <functional>
#include <vector>

#include "cli/planning/summary.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::cli {

// How much is searched for each part of a table.
struct RowEfforts {
  double chosen = 0;  // As Planner::PlanFor takes it.
  double row = 0;     // The same, for each of the others.
  double bound = 0;   // As Planner::AddDiscreteBound takes it; 0: no such bound.
};

// Told from the calling thread of what it does. None may be empty.
struct RowsProgress {
  std::function<void(double)> chosen;  // The share of the chosen plan's work that is done.
  std::function<void()> bound;         // Its bound is begun.
  std::function<void(int, int)> row;   // A row is begun here: which, and of how many.
  std::function<void()> rest;          // It waits for rows that other threads have begun.
};

// Makes the plan for `chosen_seconds`, which it returns, with its bound, and those of the points of
// a table, `threads` at a time: the same plans for any number of threads. Points at one time
// share a plan. A point for which the constraints allow no plan gets none. No plan, the chosen one
// neither, is left worse than one for less time (CarryForward). The bound is in what is returned
// only, not in the points' copies of it. T_energy, and the chosen time where `min-energy`, get the
// plan of least energy of all, and its time. The points are then sorted by time. Errors: those of
// the chosen plan, at once, then of its bound, then of a row.
Result<Plan> PlanRows(const Planner& planner, const PlanConstraints& constraints,
                      const RowEfforts& efforts, int threads, double chosen_seconds,
                      const RowsProgress& progress, std::vector<PlanPoint>* points,
                      bool min_energy = false);

// As many as the machine has cores.
int UsualThreads();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_H_
