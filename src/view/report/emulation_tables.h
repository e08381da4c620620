// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_EMULATION_TABLES_H_
#define PERSEUS_SRC_REPORT_EMULATION_TABLES_H_

#include <string>
#include <vector>

#include "perseus/emulation_report.h"
#include "report/document.h"

namespace perseus::report {

// The row of that name which has a plan, or nullptr.
const PolicyRow* FindPolicy(const std::vector<PolicyRow>& rows, std::string_view policy);

Table PolicyTable(const EmulationReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EMULATION_TABLES_H_
