// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_HELD_PLAN_H_
#define PERSEUS_CLI_HELD_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "perseus/conditions.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "perseus/robust_plan.h"

namespace perseus::cli {

// What the plan that holds comes to where clocks are asked for at another time.
struct OtherCallMode {
  CallAhead call_ahead = CallAhead::kNone;
  ExpectedFigures expected;
};

// The plan that holds under the job's conditions, and what the emulator makes of
// it with seeds that the search has not seen.
struct HeldPlan {
  RobustPlan robust;
  ExpectedFigures expected;
  ExpectedFigures paper;  // Of robust.paper_plan.
  ExpectedFigures max_clocks;
  std::optional<OtherCallMode> other_calls = {};  // Where it saves more.
};

// Precondition: HasConditions(job.settings).
Result<HeldPlan> PlanThatHolds(const Job& job, const Planner& planner, double seconds,
                               double effort, ProgressLine* progress);

// The search alone.
Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress);

// What is given up against the paper plan and why, and what the emulator says.
// Lines of `perseus plan`.
std::string FormatHeldPlan(const HeldPlan& held, const Style& style);
// The same for a report, a sentence each.
std::vector<std::string> HeldPlanNotes(const HeldPlan& held);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_HELD_PLAN_H_
