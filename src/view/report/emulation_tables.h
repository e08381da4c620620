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
// What a clock for every computation is worth against one for every rank; ""
// where the rows do not say.
std::string WorthOfPerComputation(const std::vector<PolicyRow>& rows);

Table PartitionTable(const std::vector<PartitionResult>& partitions);
// What the imbalance costs and the best partition saves; "" where unknown.
std::string CostOfImbalance(const std::vector<PartitionResult>& partitions);

Table SweepTable(const std::vector<SweepRow>& sweep);
Table RunCostTable(const EmulationReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EMULATION_TABLES_H_
