// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_SUMMARY_H_
#define PERSEUS_CLI_PLANNING_SUMMARY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/report.h"
#include "perseus/result.h"
#include "perseus/robust_plan.h"
#include "report/text.h"

namespace perseus::cli {

// Figures of the robust plan with clock calls at another time.
struct OtherCallMode {
  CallAhead call_ahead = CallAhead::kNone;
  ExpectedFigures expected;
  double net_saving_percent = 0;  // With the price of changes.
};

// A plan without conditions, as planned.
struct PaperPlan {
  double slowdown_percent = 0;    // Of the time that it is for, against all clocks at maximum.
  double net_saving_percent = 0;  // With the price of changes.
};

// The robust plan for the job's conditions, and what the emulator makes of
// it with seeds that the search has not seen.
struct RobustSummary {
  RobustPlan robust;
  ExpectedFigures expected;
  ExpectedFigures paper;  // Of robust.paper_plan.
  ExpectedFigures baseline;
  int paper_changes = 0;  // Of robust.paper_plan, as --max-changes counts them.
  // The plan to compare robust.plan with: robust.paper_plan, or, where that is faster, a plan for
  // the time that robust.plan takes.
  PaperPlan without_conditions;
  bool at_own_time = false;                       // The latter.
  JobFile settings;                               // For the names of what they say.
  std::optional<OtherCallMode> other_calls = {};  // Where it saves more.
};

// Precondition: HasConditions(job.settings).
Result<RobustSummary> MakeRobustPlan(const Job& job, const Planner& planner, double seconds,
                                     double effort, ProgressLine* progress);

// The search alone.
Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress);

// States the loss against the paper plan, why, and the emulator's figures. Lines of `perseus plan`.
std::string FormatRobustSummary(const RobustSummary& held, const Style& style);
// The same for a report, a sentence each.
std::vector<std::string> RobustPlanNotes(const RobustSummary& held);

// A named point of the frontier and the plan made there.
struct PlanPoint {
  std::string name;          // For programs: "no_slowdown", "plus_1_percent", "t_star", ...
  std::string label;         // For people: "no slowdown", "+1 %", "T*", ...
  double seconds = 0;        // Asked for.
  std::optional<Plan> plan;  // Absent where the constraints allow none.
};

// The answer of `perseus plan`: what its report says, and what only the terminal shows.
struct PlanSummary : ReportInput {
  int virtual_stages = 1;
  std::vector<std::string> beyond_tstar;  // Labels that are left out.
  std::optional<RobustSummary> held;      // Where there are conditions; `chosen` is its plan then.
  std::string output_directory;           // Empty: nothing was written.
};

// The times of the table: no slowdown, +1, +2, +5, +10 %, T_energy, T*, and
// T_min where it differs from no slowdown; `chosen_seconds` under `at` where it
// is none of them. Ascending; without plans. Those beyond T* go to `beyond_tstar`.
std::vector<PlanPoint> TablePoints(const Frontier& frontier, double baseline_seconds,
                                   double chosen_seconds, const std::string& at,
                                   std::vector<std::string>* beyond_tstar);

// Ascending in time; those at the same time stay in their order.
void SortByTime(std::vector<PlanPoint>* points);

// "Profile   text", wrapped under itself. `name` has nine letters at most.
std::string Fact(std::string_view name, std::string_view text, const Style& style);

// The row of the robust plan: what it comes to without the conditions, as all rows are.
inline constexpr std::string_view kRobustRowLabel = "for the conditions";
inline constexpr std::string_view kRobustRowName = "without_conditions";

using report::PercentOver;
using report::PercentSaved;
using report::SameTime;

// Whether the frontier's certified error is more than that of rounding.
bool IsCoarse(const Frontier& frontier);

// The baseline of savings: "all clocks at maximum", where knobs are clocks.
std::string BaselineText(const Profile& profile);

std::string FormatPlanSummary(const PlanSummary& summary, const Style& style);

// Describes the input, for the top of `plan` and `frontier`.
std::string FormatInput(const Profile& profile, const CostedPipeline& pipeline, int virtual_stages,
                        double split_ratio, const Style& style);

// Notes on odd input, for the place before the figures; "": none.
std::string FormatNotes(const std::vector<Note>& notes, const Style& style);

// The same to standard error: for answers that have no place for notes.
void WriteNotes(const std::vector<Note>& notes);

// The refusal of unbelievable figures: the file's notes, the remedy, and exit code 2.
Printout InsteadOfFigures(std::string notes, const Style& style);

// How figures of this pipeline are to be read: several stages a rank, fused computations.
std::vector<std::string> PipelineRemarks(const CostedPipeline& pipeline, int virtual_stages);

// "15 ms", "2 s", "1.5 h", "30 d".
std::string SpanOfTime(double seconds);

// Whether stragglers are named or come by chance.
bool HasStragglers(const EmulationSpec& spec);

// "noise of 1 % a computation; clocks in effect ...", with what is accepted.
std::string ConditionsInWords(const Conditions& conditions);

// "saving 12.35 %, slowdown +0.083 %, 280 clock calls an iteration".
std::string ExpectedInWords(const ExpectedFigures& figures);

// Clock calls of a run and its energy without their price.
struct CalledRun {
  double clock_calls = 0;
  double joules = 0;
};

// States the price of changes over all clock calls, those at maximum clocks included: two
// sentences. `name` is the flag or the key that states it; `of_what` follows the calls' number ("
// an iteration of a pipeline").
std::string PriceOfChangesText(double change_joules, std::string_view name,
                               const CalledRun& baseline, const CalledRun& run,
                               std::string_view of_what);

// The disturbances of the job, in words: one sentence.
std::string ScenarioInWords(const EmulationSpec& spec);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_SUMMARY_H_
