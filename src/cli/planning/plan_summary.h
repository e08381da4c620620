// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_SUMMARY_H_
#define PERSEUS_CLI_PLANNING_PLAN_SUMMARY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/framework/terminal.h"
#include "cli/planning/held_plan.h"
#include "perseus/costed_pipeline.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/report.h"
#include "perseus/result.h"
#include "report/figures.h"

namespace perseus::cli {

// A named point of the frontier and the plan made there.
struct PlanPoint {
  std::string name;          // For programs: "no_slowdown", "plus_1_percent", "t_star", ...
  std::string label;         // For people: "no slowdown", "+1 %", "T*", ...
  double seconds = 0;        // Asked for.
  std::optional<Plan> plan;  // Absent where the constraints allow none.
};

// What `perseus plan` says. The pointers are not owned.
struct PlanSummary {
  const Profile* profile = nullptr;
  const CostedPipeline* pipeline = nullptr;
  const Frontier* frontier = nullptr;
  const Plan* baseline = nullptr;
  int virtual_stages = 1;
  int data_parallel = 1;
  double split_ratio = 0.5;
  std::string at = "1.0x";
  double chosen_seconds = 0;  // What `at` means.
  Plan chosen;
  std::vector<PlanPoint> points;          // Ascending in time.
  std::vector<std::string> beyond_tstar;  // Labels that are left out.
  std::vector<ConstraintPrice> prices;
  std::optional<HeldPlan> held;      // Where there are conditions; `chosen` is its plan then.
  std::vector<Note> notes;           // Said before the figures.
  std::vector<std::string> remarks;  // Sentences.
  std::string output_directory;      // Empty: nothing was written.
  std::vector<std::string> files;    // Written into it.
};

// The times of the table: no slowdown, +1, +2, +5, +10 %, T_economic, T*, and
// T_min where it differs from no slowdown; `chosen_seconds` under `at` where it
// is none of them. Ascending; without plans. Those beyond T* go to `beyond_tstar`.
std::vector<PlanPoint> TablePoints(const Frontier& frontier, double baseline_seconds,
                                   double chosen_seconds, const std::string& at,
                                   std::vector<std::string>* beyond_tstar);

// Ascending in time; those at the same time stay in their order.
void SortByTime(std::vector<PlanPoint>* points);

// "Profile   text", wrapped under itself. `name` has nine letters at most.
std::string Fact(std::string_view name, std::string_view text, const Style& style);

// The row of the plan that holds: what it comes to without the conditions, as all rows are.
inline constexpr std::string_view kHeldRowLabel = "for the conditions";

using report::PercentOver;
using report::PercentSaved;
using report::SameTime;

// Whether the frontier's certified error is more than that of rounding.
bool IsCoarse(const Frontier& frontier);

// What savings are measured against: "all clocks at maximum", where knobs are clocks.
std::string BaselineText(const Profile& profile);

std::string FormatPlanSummary(const PlanSummary& summary, const Style& style);

// What was read, for the top of `plan` and `frontier`.
std::string FormatInput(const Profile& profile, const CostedPipeline& pipeline, int virtual_stages,
                        double split_ratio, const Style& style);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_SUMMARY_H_
