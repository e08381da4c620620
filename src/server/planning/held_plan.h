// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_HELD_PLAN_H_
#define PERSEUS_SERVER_PLANNING_HELD_PLAN_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::server {

// A plan and, if its job has conditions, the expected figures under them.
struct HeldPlan {
  Plan plan;
  std::optional<ExpectedFigures> expected;
};

// A plan that holds under the job's conditions. `seconds` is a time without conditions: under
// conditions, the plan may be slower than maximum clocks by the same factor. Errors: those of
// PlanUnder(). Precondition of both functions: HasConditions(job.settings).
Result<Plan> PlanThatHolds(const Job& job, const Planner& planner, double seconds, double effort,
                           const ProgressFunction& callback);

// Such plans from the time at maximum clocks to T*, by ascending time. `quick` gives fewer plans.
// Times for which no plan is found are left out.
inline constexpr std::size_t kMostHeldLadderPlans = 11;
Result<std::vector<Plan>> LadderThatHolds(const Job& job, const Planner& planner, bool quick,
                                          double effort, const ProgressFunction& callback);

// Adds the expected figures of maximum clocks and of each plan under the job's conditions. Adds
// nothing for a job without conditions. `keep_going` is called with the share that is done.
struct HeldPlans {
  std::optional<ExpectedFigures> baseline;
  std::vector<HeldPlan> plans;
};
Result<HeldPlans> WithExpected(const Job& job, const Planner& planner, std::vector<Plan> plans,
                               const ProgressFunction& progress);

// Ensures that no plan costs more energy (without that of waiting) than a plan for less time:
// replaces it by the faster plan where it does.
void CarryForward(const Job& job, std::vector<HeldPlan>* plans);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_HELD_PLAN_H_
