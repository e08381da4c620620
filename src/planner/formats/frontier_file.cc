// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "perseus/plan.h"
#include "perseus/plan_file.h"

namespace perseus {
inline namespace v0 {

std::string FormatFrontierCsv(const Frontier& frontier) {
  std::string csv = "iteration_time_s,energy_j,slope_w\n";
  for (const FrontierPoint& point : frontier.points) {
    fmt::format_to(std::back_inserter(csv), "{},{},{}\n", point.iteration_time_seconds,
                   point.energy_joules, point.slope_watts);
  }
  return csv;
}

}  // namespace v0
}  // namespace perseus
