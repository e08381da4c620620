// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_FRONTIER_PLOT_H_
#define PERSEUS_SRC_REPORT_FRONTIER_PLOT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "perseus/report.h"

namespace perseus::report {

struct FrontierPlot {
  std::string svg;
  nlohmann::ordered_json hover;  // Scales and curve, for the reading under the pointer.
};

// Energy over iteration time: the lower bound, the baseline and the plans.
FrontierPlot DrawFrontier(const ReportInput& input);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_FRONTIER_PLOT_H_
