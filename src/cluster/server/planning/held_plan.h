// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_HELD_PLAN_H_
#define PERSEUS_SERVER_PLANNING_HELD_PLAN_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::server {

// A plan and, where its job has conditions, what it comes to under them.
struct HeldPlan {
  Plan plan;
  std::optional<ExpectedFigures> expected;
};

// The plan that holds under the job's conditions while the iteration takes as
// long, against maximum clocks, as `seconds` against them without conditions. Errors: those
// of PlanUnder().
// Precondition of both: HasConditions(job.settings).
Result<Plan> PlanThatHolds(const Job& job, const Planner& planner, double seconds, double effort,
                           const PlanCallback& callback);

// Such plans from the time at maximum clocks to T*, by ascending time: fewer where they are to
// be there soon. Without those times for which none is found.
inline constexpr std::size_t kMostHeldLadderPlans = 11;
Result<std::vector<Plan>> LadderThatHolds(const Job& job, const Planner& planner, bool quick,
                                          double effort, const PlanCallback& callback);

// What maximum clocks come to, and each of the plans; without conditions nothing is expected.
// `keep_going` is told the share that is done.
struct HeldPlans {
  std::optional<ExpectedFigures> baseline;
  std::vector<HeldPlan> plans;
};
Result<HeldPlans> WithExpected(const Job& job, const Planner& planner, std::vector<Plan> plans,
                               const std::function<bool(double)>& keep_going);

// Makes no plan worse than one before it, which is for less time: in energy without waiting.
void CarryForward(const Job& job, std::vector<HeldPlan>* plans);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_HELD_PLAN_H_
