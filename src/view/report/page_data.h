// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_PAGE_DATA_H_
#define PERSEUS_SRC_REPORT_PAGE_DATA_H_

#include <nlohmann/json.hpp>

#include "perseus/report.h"
#include "report/frontier_plot.h"

namespace perseus::report {

// What the page's script draws from. Its shape is the typedef ReportData in
// assets/report.js. Computations are listed rank by rank in execution order.
nlohmann::ordered_json PageData(const ReportInput& input, const FrontierPlot& plot);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_PAGE_DATA_H_
