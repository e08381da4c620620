// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLAN_ROWS_H_
#define PERSEUS_CLI_PLAN_ROWS_H_

#include <functional>
#include <vector>

#include "cli/plan_summary.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::cli {

// Plans the points of a table, `threads` at a time: the same plans for any
// number of threads. Points at one time share a plan; those at
// `chosen_seconds` share `chosen`, which is given. A point for which the
// constraints allow no plan gets none. Then no plan, `chosen` neither, is left
// worse than one for less time (CarryForward). `begun` is called from the
// calling thread with the number of points begun and of all.
Result<void> PlanRows(const Planner& planner, const PlanConstraints& constraints, double effort,
                      int threads, double chosen_seconds,
                      const std::function<void(int, int)>& begun, Plan* chosen,
                      std::vector<PlanPoint>* points);

// As many as the machine has cores.
int UsualThreads();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLAN_ROWS_H_
