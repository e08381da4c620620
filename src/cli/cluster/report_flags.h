// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_REPORT_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_REPORT_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/framework/server_flags.h"
#include "common/labels.h"
#include "perseus/result.h"

namespace perseus::cli {

// A point in time: a day of UTC, or so long before now.
struct When {
  std::optional<std::int64_t> day_seconds;  // Since 1970.
  double ago_seconds = 0;
};
// "2026-11-01" or "30d".
Result<When> ParseWhen(std::string_view text);

// The name in "label:NAME" or "label:NAME,day"; empty: there is none.
std::string LabelOfBy(std::string_view by);

// What was given to `report`.
struct ReportFlags {
  std::string action;  // "energy"
  When since = {.day_seconds = {}, .ago_seconds = 30 * 86'400.0};
  std::optional<When> until;  // None: today is in it.
  std::string by = "job";
  JobLabels labels;  // Only jobs with these.
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> carbon_g_per_kwh;
  std::string csv_file;  // Empty: a table on standard output.
  bool json = false;
  ServerFlags server;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_REPORT_FLAGS_H_
