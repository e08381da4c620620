// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/fights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace perseus::agent {

std::vector<std::string> FightsOf(const device::GpuConditions& conditions, bool is_locked) {
  std::vector<std::string> fights;
  if (is_locked) {
    for (const std::string& name : device::ThrottleNames(conditions.throttle_reasons)) {
      fights.push_back(
          fmt::format("its clock is locked, but the GPU runs slower ({}): computations take longer "
                      "than planned",
                      name));
    }
  }
  if (!conditions.power_profiles.empty()) {
    fights.push_back(
        fmt::format("workload power profiles are enforced ({}), which may change clocks and power; "
                    "clear them for jobs that follow a plan",
                    fmt::join(conditions.power_profiles, ", ")));
  }
  if (conditions.power_floor_watts) {
    fights.push_back(fmt::format(
        "power smoothing keeps the GPU at {} W or more, which cancels savings below that",
        *conditions.power_floor_watts));
  }
  if (conditions.power_limit_watts && conditions.default_power_limit_watts &&
      *conditions.power_limit_watts < *conditions.default_power_limit_watts) {
    fights.push_back(fmt::format(
        "its power is capped at {} W (default {} W), so that high clocks may not be reached",
        *conditions.power_limit_watts, *conditions.default_power_limit_watts));
  }
  return fights;
}

}  // namespace perseus::agent
