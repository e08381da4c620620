// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_REPORT_H_
#define PERSEUS_REPORT_H_

// Link perseus::report (pkg-config: perseus-report).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/export.h"
#include "perseus/job.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/profile.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One line of the savings table: a point of the frontier made real.
struct ReportRow : PlanFigures {
  std::string label;     // For people: "no slowdown", "+1 %", "T*", ...
  std::string name;      // For programs: "no_slowdown", "t_star", ...
  bool feasible = true;  // Else the constraints allow no plan; figures are 0.
  std::optional<DiscreteBound> discrete_bound;  // As in Plan; of the chosen row.
  bool chosen = false;                          // The plan that the report shows.
};

// The row of a plan.
ReportRow MakeReportRow(std::string label, const Plan& plan);

// The price of one constraint: the plan with this constraint alone against the plan without any.
struct ConstraintPrice {
  std::string constraint = {};  // As on the command line: "--granularity phase".
  double energy_percent = 0;
  double time_percent = 0;
};

// All that a report says; ReportOf() fills it in. Pointers are not owned and must outlive the call.
// Strings may hold anything: they are escaped, and bytes that are not UTF-8 are replaced.
//
// All functions below give the same bytes for the same input, and several threads may call them.
// Errors: a null pointer (unless its comment allows it), a plan of another pipeline, an invalid
// pipeline.
struct ReportInput {
  const Profile* profile = nullptr;
  const CostedPipeline* pipeline = nullptr;
  const Frontier* frontier = nullptr;
  const Plan* baseline = nullptr;  // Every computation at its highest clock.
  const Plan* chosen = nullptr;
  std::vector<ReportRow> rows = {};  // In the order of the terminal's table.
  std::string title = {};            // Empty: "Energy plan".
  std::string at = "1.0x";           // What was asked for, as the user put it.
  std::string knob_unit = "MHz";     // Ignored where knobs are labels.
  int data_parallel = 1;             // Pipelines of the job.
  double split_ratio = 0.5;          // Of `backward`, where the schedule divides it.
  PlanConstraints constraints = {};  // Under which `chosen` was made.
  std::vector<ConstraintPrice> prices = {};
  std::vector<Note> notes = {};  // What was found odd in the input: said before the figures.
  std::vector<std::string> remarks = {};  // Caveats, a sentence each ("The sample is modelled.").
  std::vector<std::string> files = {};    // Names of what was written, for the summary.

  // If `chosen` was made for conditions: these, what it comes to under them, and the same for the
  // plan that does not know them. `paper_plan` is null otherwise.
  std::optional<Conditions> conditions = {};
  ExpectedFigures expected = {};
  const Plan* paper_plan = nullptr;
  ExpectedFigures expected_of_paper_plan = {};
  double bound_percent = 0;  // No plan saves more under the conditions.
  bool bound_is_proven = false;
  std::vector<std::pair<int, double>> price_curve =
      {};  // Changes an iteration, and saving in percent.
};

// The report of a job and its plan. Its table has one row:
//
//   const auto html = FormatHtmlReport(ReportOf(*job, *made));
//
// Both must outlive the result.
ReportInput ReportOf(const Job& job, const JobPlan& made);

// The plan and its table for other programs: what `perseus plan --json` prints
// (fields: docs/reference/cli.md).
Result<std::string> FormatPlanSummaryJson(const ReportInput& input);

// The frontier with all its breakpoints: what `perseus frontier --json` prints.
// `chosen` may be null; rows are not read. Otherwise as above.
Result<std::string> FormatFrontierJson(const ReportInput& input);

// report.html: one self-contained HTML file that opens without network.
Result<std::string> FormatHtmlReport(const ReportInput& input);

// timeline.pftrace: both timelines for Perfetto (ui.perfetto.dev), in its own
// protocol buffers (TrackEvent). Times are whole nanoseconds.
Result<std::string> FormatTimelineTrace(const ReportInput& input);

// The emulated job under one policy or plan.
struct PolicyRow {
  std::string policy = {};  // Name, with its granularity where it has one.
  double time_seconds = 0;  // All iterations.
  EnergySplit energy = {};
  double slowdown_percent = 0;  // Against maximum clocks in the same scenario.
  double saving_percent = 0;    // Likewise.
  double average_watts = 0;
  double peak_watts = 0;
};

// All that a report on an emulated job says. Pointers are not owned and must outlive the call.
//
// The functions below that take one give the same bytes for the same input. Errors: a pointer that
// is null, an emulation or plan of another pipeline.
struct EmulationReportInput {
  const Profile* profile = nullptr;
  const CostedPipeline* pipeline = nullptr;
  const EmulationSpec* spec = nullptr;
  const Emulation* emulation = nullptr;
  const Emulation* baseline = nullptr;   // The same scenario at maximum clocks.
  std::string title = {};                // Empty: "Emulated job".
  std::string policy = {};               // That `emulation` followed, for programs.
  std::string label = {};                // The same for people: "perseus (phase)".
  std::vector<PolicyRow> policies = {};  // Empty: no comparison was made.
  std::string scenario = {};             // What disturbs the job, a sentence; empty: not said.
  double change_joules = 0;              // Price of a change of clock, in no energy; 0: none given.
  std::vector<Note> notes = {};  // What was found odd in the input: said before the figures.
  std::vector<std::string> remarks = {};  // A sentence each.
  std::vector<std::string> files = {};    // Names of what is written beside emulation.json.
};

// emulation.json (fields: docs/reference/files.md): every figure of the job, one iteration
// a line.
Result<std::string> FormatEmulationJson(const EmulationReportInput& input);

// report.html: one self-contained file that opens without network, with the
// job's power over time, where the energy went, iteration times, and the
// comparisons.
Result<std::string> FormatEmulationHtml(const EmulationReportInput& input);

// timeline.pftrace: the iteration kept in the emulation for Perfetto, in its own
// protocol buffers (TrackEvent): one process a pipeline, one thread a rank, power
// as a counter.
Result<std::string> FormatEmulationTimelineTrace(const EmulationReportInput& input);

// iterations.csv and power.csv (columns: docs/reference/files.md).
std::string FormatIterationsCsv(const Emulation& emulation);
std::string FormatPowerCsv(const Emulation& emulation);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_REPORT_H_
