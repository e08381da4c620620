// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_REPORT_CHECK_INPUT_H_
#define PERSEUS_REPORT_CHECK_INPUT_H_

#include "perseus/report.h"
#include "perseus/result.h"

namespace perseus::report {

// Checks the preconditions of every report: nothing is missing, and all is of one pipeline. Without
// `chosen` that plan may be missing.
Result<void> CheckInput(const ReportInput& input, bool chosen);
Result<void> CheckInput(const EmulationReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_REPORT_CHECK_INPUT_H_
