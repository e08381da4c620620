// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One call at least of every public header of perseus::report.

#include <string>

#include "check.h"
#include "perseus/report.h"
#include "small_job.h"

int main() {
  const perseus::Planner planner = SmallJob();
  perseus::ReportInput input;
  const perseus::Profile profile = SmallProfile();
  input.profile = &profile;
  input.pipeline = &planner.pipeline();
  input.frontier = &planner.frontier();
  input.baseline = &planner.baseline();
  input.chosen = &planner.baseline();
  input.rows = {perseus::MakeReportRow("maximum clocks", planner.baseline())};
  Check(perseus::FormatHtmlReport(input).value().find("</html>") != std::string::npos, "report.h");
  Check(perseus::FormatIterationsCsv({}).find('\n') != std::string::npos, "report.h");
  return 0;
}
