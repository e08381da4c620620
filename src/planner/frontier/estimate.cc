// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How much work a frontier will be.
//
// A pivot with flow costs its cycle and the smaller part of the side that it
// splits: in pipelines about a fifth of the nodes. There is about one for each
// breakpoint. Breakpoints are bounded in two ways: by the segments there are to
// use up, each a breakpoint of its own where few activities share a curve; and, as all
// microbatches of a stage share its slopes, by the sums that slopes of different
// curves can form, which grow with the square of their number. With rounded
// slopes there are no more than steps from no slope to that at the fastest time:
// the steepest of as many activities as go on side by side. Pivots without
// flow are some for each segment and cheap.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/hull.h"
#include "frontier/network.h"
#include "perseus/frontier.h"

namespace perseus {
inline namespace v0 {
namespace {

// Fitted: see docs/explanation/solver.md.
constexpr double kBreakpointsPerSegment = 0.95;
constexpr double kBreakpointsPerSlopePair = 0.09;
constexpr double kStepsPerActivity = 1.2;
constexpr double kNodesPerBreakpoint = 0.18;
constexpr double kWorkPerSegment = 30;
constexpr double kSecondsPerWork = 18e-9;
// Of the network and the walk together.
constexpr double kBytesPerActivity = 160;
constexpr double kBytesPerArc = 80;
constexpr double kBytesPerBreakpoint = 48;

// Adds the segments of a curve that `users` activities have. Rounded slopes of 0
// vanish, equal ones are one.
void AddCurve(const std::vector<TimeCost>& options, double slope_quantum, double users,
              FrontierSize* size) {
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
  size->curve_segments += segments;
  size->segments += users * segments;
  if (slope_quantum > 0) size->slope_steps = std::max(size->slope_steps, last);
}

double LongestChain(const TimeCostProblem& problem) {
  const std::size_t n = problem.curve_of.size();
  std::vector<int> waiting(n, 0);
  std::vector<std::size_t> first(n + 1, 0);
  for (const TimeCostPrecedence& p : problem.precedences) {
    ++waiting[p.to];
    ++first[p.from + 1];
  }
  for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
  std::vector<int> successors(problem.precedences.size());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (const TimeCostPrecedence& p : problem.precedences) successors[next[p.from]++] = p.to;
  std::vector<int> ready;
  for (std::size_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push_back(static_cast<int>(i));
  }
  // Level by level.
  double levels = 0;
  for (std::vector<int> following; !ready.empty(); ready.swap(following), following.clear()) {
    ++levels;
    for (const int i : ready) {
      for (std::size_t k = first[i]; k < first[i + 1]; ++k) {
        if (--waiting[successors[k]] == 0) following.push_back(successors[k]);
      }
    }
  }
  return levels;
}

}  // namespace

Result<FrontierSize> SizeOf(const TimeCostProblem& problem, double slope_quantum) {
  if (auto good = frontier::CheckProblem(problem); !good) return tl::unexpected(good.error());
  std::vector<std::int64_t> users(problem.curves.size(), 0);
  for (const int curve : problem.curve_of) ++users[curve];
  FrontierSize size;
  size.activities = static_cast<double>(problem.curve_of.size());
  size.precedences = static_cast<double>(problem.precedences.size());
  for (std::size_t c = 0; c < problem.curves.size(); ++c) {
    if (users[c] == 0) continue;
    AddCurve(problem.curves[c], slope_quantum, static_cast<double>(users[c]), &size);
  }
  size.longest_chain = LongestChain(problem);
  return size;
}

FrontierEstimate EstimateFrontier(const FrontierSize& size) {
  FrontierEstimate estimate;
  const double nodes = 2 + 2 * size.activities;
  const double arcs = size.activities + size.precedences;
  estimate.breakpoints =
      1 + std::min(kBreakpointsPerSegment * size.segments,
                   kBreakpointsPerSlopePair * size.curve_segments * size.curve_segments);
  if (size.slope_steps > 0 && size.longest_chain > 0) {
    const double side_by_side = size.activities / size.longest_chain;
    estimate.breakpoints =
        std::min(estimate.breakpoints, 1 + kStepsPerActivity * side_by_side * size.slope_steps);
  }
  estimate.work =
      kNodesPerBreakpoint * nodes * estimate.breakpoints + kWorkPerSegment * size.segments + nodes;
  estimate.seconds = kSecondsPerWork * estimate.work;
  estimate.bytes = kBytesPerActivity * size.activities + kBytesPerArc * arcs +
                   kBytesPerBreakpoint * estimate.breakpoints;
  return estimate;
}

}  // namespace v0
}  // namespace perseus
