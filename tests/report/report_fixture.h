// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_REPORT_REPORT_FIXTURE_H_
#define PERSEUS_TESTS_REPORT_REPORT_FIXTURE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perseus/report.h"

namespace perseus::report {

// A report's input with a made-up GPU and a plan by one sweep of slack
// reclaim: real enough to look at, and independent of solver and planner.
struct Sample {
  Profile profile;
  CostedPipeline pipeline;
  Frontier frontier;
  Plan baseline;
  Plan chosen;
  std::vector<ReportRow> rows;

  ReportInput Input() const;
};

Sample MakeSample(const std::string& schedule, int stages, int virtual_stages, int microbatches);

// The data of each chart of the page, in order.
std::vector<nlohmann::json> EmbeddedCharts(const std::string& html);

}  // namespace perseus::report

#endif  // PERSEUS_TESTS_REPORT_REPORT_FIXTURE_H_
