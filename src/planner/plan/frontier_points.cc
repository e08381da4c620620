// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/frontier_points.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace perseus::plan {
namespace {

constexpr double kSameSlope = 1e-14;

}  // namespace

Frontier MakeFrontier(const TimeCostFrontier& solved, const CostedPipeline& pipeline,
                      double slope_quantum, double fastest_seconds, double tstar_seconds) {
  const double watts = pipeline.total_blocking_power_watts;
  Frontier frontier;
  for (const FrontierBreakpoint& corner : solved.breakpoints) {
    frontier.points.push_back({.iteration_time_seconds = corner.time,
                               .energy_joules = corner.cost + watts * corner.time,
                               .slope_watts = corner.slope});
  }
  // The grid's ticks are finer than what doubles resolve over a path: state
  // both ends as Replay() adds them up.
  std::vector<FrontierPoint>& all = frontier.points;
  all.front().iteration_time_seconds = fastest_seconds;
  if (all.size() > 1) all.back().iteration_time_seconds = tstar_seconds;
  std::vector<FrontierPoint> points;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double seconds = all[i].iteration_time_seconds;
    const bool at_an_end = i == 0 || i + 1 == all.size();
    if (at_an_end || (seconds > fastest_seconds && seconds < all.back().iteration_time_seconds)) {
      points.push_back(all[i]);
    }
  }
  // Corners between slopes that are one and the same but for rounding.
  frontier.points.clear();
  for (const FrontierPoint& point : points) {
    if (!frontier.points.empty() &&
        point.slope_watts >= frontier.points.back().slope_watts * (1 - kSameSlope)) {
      if (&point != &points.back()) continue;
      frontier.points.pop_back();
    }
    frontier.points.push_back(point);
  }
  frontier.fastest_seconds = fastest_seconds;
  frontier.tstar_seconds = tstar_seconds;
  const auto economic =
      std::find_if(frontier.points.begin(), frontier.points.end(),
                   [watts](const FrontierPoint& p) { return p.slope_watts <= watts; });
  frontier.economic_seconds = economic->iteration_time_seconds;
  frontier.slope_quantum_watts = slope_quantum;
  frontier.total_blocking_power_watts = pipeline.total_blocking_power_watts;
  // In exact mode the only error is that of doubles themselves.
  if (slope_quantum > 0 && economic->energy_joules > 0) {
    frontier.certified_error = solved.cost_error / economic->energy_joules;
  }
  return frontier;
}

}  // namespace perseus::plan
