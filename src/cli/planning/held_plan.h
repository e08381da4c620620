// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_HELD_PLAN_H_
#define PERSEUS_CLI_PLANNING_HELD_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
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
  double net_saving_percent = 0;  // With the price of changes.
};

// A plan without conditions, as it is on paper.
struct PaperPlan {
  double slowdown_percent = 0;    // Of the time that it is for, against all clocks at maximum.
  double net_saving_percent = 0;  // With the price of changes.
};

// The plan that holds under the job's conditions, and what the emulator makes of
// it with seeds that the search has not seen.
struct HeldPlan {
  RobustPlan robust;
  ExpectedFigures expected;
  ExpectedFigures paper;  // Of robust.paper_plan.
  ExpectedFigures baseline;
  int paper_changes = 0;  // Of robust.paper_plan, as --max-changes counts them.
  // What robust.plan is compared with: robust.paper_plan, or, where that is faster, a plan for the
  // time that robust.plan takes.
  PaperPlan on_paper;
  bool at_own_time = false;                       // The latter.
  JobFile settings;                               // For the names of what they say.
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

#endif  // PERSEUS_CLI_PLANNING_HELD_PLAN_H_
