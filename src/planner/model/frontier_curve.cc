// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "perseus/plan.h"

namespace perseus {
inline namespace v0 {

double Frontier::EnergyAt(double seconds) const {
  if (points.empty()) return 0;
  const auto right = std::lower_bound(
      points.begin(), points.end(), seconds,
      [](const FrontierPoint& point, double t) { return point.iteration_time_seconds < t; });
  if (right == points.begin()) return right->energy_joules;
  if (right == points.end()) {
    const FrontierPoint& last = points.back();
    return last.energy_joules +
           total_blocking_power_watts * (seconds - last.iteration_time_seconds);
  }
  const FrontierPoint& a = *(right - 1);
  const double share = (seconds - a.iteration_time_seconds) /
                       (right->iteration_time_seconds - a.iteration_time_seconds);
  return a.energy_joules + share * (right->energy_joules - a.energy_joules);
}

}  // namespace v0
}  // namespace perseus
