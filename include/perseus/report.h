// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_REPORT_H_
#define PERSEUS_REPORT_H_

#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus {

// One line of the savings table: a point of the frontier made real.
struct ReportRow {
  std::string label;  // "no slowdown", "+1 %", "T_economic", ...
  double iteration_time_seconds = 0;
  double energy_joules = 0;  // One pipeline.
  double saving_percent = 0;
  double average_power_watts = 0;
  double lower_bound_joules = 0;
  double gap_percent = 0;
  bool chosen = false;  // The plan that the report shows.
};

// The row of a plan.
ReportRow MakeReportRow(std::string label, const Plan& plan);

// All that a report says. The pointers are not owned, must not be null and
// must outlive the call; both plans belong to `pipeline`. Strings may hold
// anything: they are escaped, and bytes that are not UTF-8 are replaced.
struct ReportInput {
  const CostedPipeline* pipeline = nullptr;
  const Frontier* frontier = nullptr;
  const Plan* baseline = nullptr;  // Every computation at its highest clock.
  const Plan* chosen = nullptr;
  std::vector<ReportRow> rows;  // In the order of the terminal's table.
  std::string title;            // Empty: "Energy plan".
  std::string profile_source;   // Only the file name is shown.
  std::string profile_sha256;
  std::string knob_unit = "MHz";   // Ignored where knobs are labels.
  int data_parallel = 1;           // Pipelines of the job.
  PlanConstraints constraints;     // Under which `chosen` was made.
  std::vector<std::string> notes;  // Caveats, a sentence each ("The sample is modelled.").
};

// report.html: one self-contained HTML file that opens without network. The
// same input gives the same bytes. Never fails. Safe from several threads.
std::string FormatHtmlReport(const ReportInput& input);

// timeline.json: both timelines in Chrome's trace event format, for Perfetto
// (ui.perfetto.dev) and chrome://tracing. Times are whole nanoseconds, written
// as microseconds. The same input gives the same bytes. Never fails. Safe from
// several threads.
std::string FormatTimelineJson(const ReportInput& input);

}  // namespace perseus

#endif  // PERSEUS_REPORT_H_
