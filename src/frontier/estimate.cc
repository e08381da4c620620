// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How much work a frontier will be.
//
// A pivot with flow costs its cycle and the smaller part of the side that it
// splits: in pipelines about a quarter of the nodes. There is about one for each
// breakpoint. Breakpoints are bounded in two ways: by the segments there are to
// use up, of which a good quarter shows as a breakpoint of its own; and, as all
// microbatches of a stage share its slopes, by the sums that slopes of different
// curves can form, which grow with the square of their number. Pivots without
// flow are some for each segment and cheap.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "frontier/hull.h"
#include "perseus/frontier.h"

namespace perseus {
namespace {

// Fitted: see docs/solver.md.
constexpr double kBreakpointsPerSegment = 0.3;
constexpr double kBreakpointsPerSlopePair = 0.01;
constexpr double kNodesPerBreakpoint = 0.25;
constexpr double kWorkPerSegment = 10;
constexpr double kSecondsPerWork = 15e-9;
// Of the network and the walk together.
constexpr double kBytesPerActivity = 250;
constexpr double kBytesPerArc = 110;
constexpr double kBytesPerBreakpoint = 48;

// Segments of the hull once slopes are rounded: slopes of 0 vanish, equal ones
// are one.
double CountSegments(const std::vector<TimeCost>& options, double slope_quantum) {
  const std::vector<TimeCost> hull = frontier::LowerHull(options, 0);
  double segments = 0;
  double last = 0;
  for (std::size_t k = hull.size(); k-- > 1;) {
    const TimeCost& faster = hull[k - 1];
    double slope = (faster.cost - hull[k].cost) / (hull[k].time - faster.time);
    if (slope_quantum > 0) slope = std::round(slope / slope_quantum);
    if (slope > last) ++segments;
    last = std::max(last, slope);
  }
  return segments;
}

}  // namespace

FrontierSize SizeOf(const TimeCostProblem& problem, double slope_quantum) {
  std::vector<std::int64_t> users(problem.curves.size(), 0);
  for (const int curve : problem.curve_of) ++users[curve];
  FrontierSize size;
  size.activities = static_cast<double>(problem.curve_of.size());
  size.precedences = static_cast<double>(problem.precedences.size());
  for (std::size_t c = 0; c < problem.curves.size(); ++c) {
    if (users[c] == 0) continue;
    const double segments = CountSegments(problem.curves[c], slope_quantum);
    size.curve_segments += segments;
    size.segments += static_cast<double>(users[c]) * segments;
  }
  return size;
}

FrontierEstimate EstimateFrontier(const FrontierSize& size) {
  FrontierEstimate estimate;
  const double nodes = 2 + 2 * size.activities;
  const double arcs = size.activities + size.precedences;
  estimate.breakpoints =
      1 + std::min(kBreakpointsPerSegment * size.segments,
                   kBreakpointsPerSlopePair * size.curve_segments * size.curve_segments);
  estimate.work =
      kNodesPerBreakpoint * nodes * estimate.breakpoints + kWorkPerSegment * size.segments + nodes;
  estimate.seconds = kSecondsPerWork * estimate.work;
  estimate.bytes = kBytesPerActivity * size.activities + kBytesPerArc * arcs +
                   kBytesPerBreakpoint * estimate.breakpoints;
  return estimate;
}

}  // namespace perseus
