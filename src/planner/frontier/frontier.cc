// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "frontier/network.h"
#include "frontier/solver.h"
#include "frontier/walk.h"

namespace perseus {
inline namespace v0 {
namespace {

using frontier::Network;
using frontier::Walk;

// Cost at the slowest time: every activity at its least cost.
double SlowestCost(const Network& network) {
  double cost = 0;
  for (const int c : network.curve_of) cost += network.curves[c].slowest_cost;
  return cost;
}

TimeCostSchedule MakeSchedule(const Network& network, const Walk& walk, std::int64_t deadline,
                              double cost) {
  const frontier::Scale& scale = network.scale;
  const std::vector<std::int64_t> events = walk.EventTimes(deadline);
  const int n = network.num_activities;
  TimeCostSchedule schedule;
  schedule.time = scale.Time(deadline);
  schedule.cost = cost;
  schedule.price_of_time = scale.Slope(walk.slope());
  schedule.start.resize(n);
  schedule.duration.resize(n);
  schedule.price.resize(n);
  for (int i = 0; i < n; ++i) {
    const std::int64_t start = events[Network::StartNode(i)];
    schedule.start[i] = scale.Time(start);
    schedule.duration[i] = scale.Time(events[Network::EndNode(i)] - start);
    schedule.price[i] = scale.Slope(walk.ArcFlow(i));
  }
  schedule.precedence_price.resize(network.num_precedences);
  for (int a = n; a < static_cast<int>(network.arcs.size()); ++a) {
    const double price = scale.Slope(walk.ArcFlow(a));
    if (a < n + network.num_precedences) schedule.precedence_price[a - n] = price;
    schedule.delay_value += price * scale.Time(network.arcs[a].length);
  }
  return schedule;
}

Result<void> CheckOptions(const FrontierOptions& options) {
  if (std::isnan(options.stop_time.value_or(0)) || std::isnan(options.stop_slope.value_or(0))) {
    return InvalidInput("a time or slope to stop at is not a number");
  }
  for (const double time : options.schedule_times) {
    if (std::isnan(time)) return InvalidInput("a schedule time is not a number");
  }
  return {};
}

}  // namespace

}  // namespace v0

Result<TimeCostFrontier> frontier::WalkFrontier(const Network& network,
                                                const FrontierOptions& options,
                                                std::unique_ptr<const WalkLadder>* kept) {
  const Scale& scale = network.scale;
  Walk walk(network);
  std::unique_ptr<WalkLadder> ladder;
  if (kept != nullptr) ladder = std::make_unique<WalkLadder>(network, walk);

  TimeCostFrontier result;
  double above = 0;
  double below = 0;
  for (const int c : network.curve_of) {
    above += network.curves[c].cost_above;
    below += network.curves[c].cost_below;
  }
  // The sum of rounded costs is nowhere more than `above` over the sum of true
  // ones, nor more than `below` under it; the same holds for their minima.
  result.cost_error = std::max(above, below);

  // Wanted deadlines, latest first.
  std::vector<std::size_t> wanted(options.schedule_times.size());
  std::iota(wanted.begin(), wanted.end(), std::size_t{0});
  std::stable_sort(wanted.begin(), wanted.end(), [&](std::size_t a, std::size_t b) {
    return options.schedule_times[a] > options.schedule_times[b];
  });
  result.schedules.resize(wanted.size());
  std::size_t next_wanted = 0;

  const double slowest_cost = SlowestCost(network);
  const std::int64_t slowest_time = walk.time();
  const std::int64_t fastest_time = network.LongestToSink(/*slowest=*/false)[Network::kSource];
  std::int64_t slope_to_the_right = 0;
  long long corners = 0;
  for (;;) {
    const bool last = walk.at_fastest();
    const double cost = slowest_cost + scale.Cost(walk.cost());
    if (last || walk.slope() != slope_to_the_right) {
      const double time = scale.Time(walk.time());
      if (!result.breakpoints.empty() && result.breakpoints.back().time <= time) {
        result.breakpoints.back().cost = cost;  // Corners a few ticks apart are one double.
      } else {
        result.breakpoints.push_back({time, cost, scale.Slope(slope_to_the_right)});
      }
      slope_to_the_right = walk.slope();
    }
    for (; next_wanted < wanted.size(); ++next_wanted) {
      const std::size_t index = wanted[next_wanted];
      const double time = std::min(options.schedule_times[index], scale.Time(slowest_time));
      const std::int64_t deadline = std::min(walk.time(), time < 0 ? 0 : scale.TicksDown(time));
      if (!last && deadline < walk.next_time()) break;
      const std::int64_t reached = last ? walk.time() : deadline;
      const frontier::Int128 rise =
          static_cast<frontier::Int128>(walk.slope()) * (walk.time() - reached);
      result.schedules[index] =
          MakeSchedule(network, walk, reached, slowest_cost + scale.Cost(walk.cost() + rise));
    }
    if (last) {
      result.complete = true;
      break;
    }
    const bool stop = (options.stop_time && scale.Time(walk.time()) <= *options.stop_time) ||
                      (options.stop_slope && scale.Slope(walk.slope()) >= *options.stop_slope);
    if (stop && next_wanted == wanted.size()) break;
    const bool report = corners++ % 128 == 0;
    if (report && options.progress) {
      const double share = slowest_time > fastest_time
                               ? static_cast<double>(slowest_time - walk.time()) /
                                     static_cast<double>(slowest_time - fastest_time)
                               : 0;
      if (!options.progress({.share = share})) {
        return MakeError(ErrorCode::kCancelled,
                         "the frontier was cancelled before it was complete");
      }
    }
    walk.Advance();
    if (ladder) ladder->Offer(walk);
  }
  if (kept != nullptr) *kept = std::move(ladder);
  result.pivots = walk.pivots();
  result.work = walk.work();
  std::reverse(result.breakpoints.begin(), result.breakpoints.end());
  return result;
}

inline namespace v0 {

Result<TimeCostFrontier> SolveFrontier(const TimeCostProblem& problem,
                                       const FrontierOptions& options) {
  if (auto checked = CheckOptions(options); !checked) return tl::unexpected(checked.error());
  auto network = Network::Build(problem, options.slope_quantum);
  if (!network) return tl::unexpected(network.error());
  return frontier::WalkFrontier(*network, options, nullptr);
}

Result<std::vector<std::vector<TimeCost>>> QuantisedCurves(const TimeCostProblem& problem,
                                                           const FrontierOptions& options) {
  if (auto checked = CheckOptions(options); !checked) return tl::unexpected(checked.error());
  auto network = Network::Build(problem, options.slope_quantum);
  if (!network) return tl::unexpected(network.error());
  const frontier::Scale& scale = network->scale;
  std::vector<std::vector<TimeCost>> curves;
  for (const frontier::Curve& curve : network->curves) {
    std::vector<TimeCost> vertices;
    for (std::size_t k = 0; k < curve.lengths.size(); ++k) {
      vertices.push_back(
          {scale.Time(curve.lengths[k]), curve.slowest_cost + scale.Cost(curve.costs[k])});
    }
    std::reverse(vertices.begin(), vertices.end());
    curves.push_back(std::move(vertices));
  }
  return curves;
}

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

namespace {

// Fitted: see docs/explanation/planning.md.
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
