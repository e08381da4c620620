// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace perseus::frontier {
namespace {

// Options whose times differ by less than this share are one option to the
// solver, as fast as the faster and as cheap as the cheaper (which keeps the
// result a lower bound): a slope between them would be noise that costs every
// other slope its digits.
constexpr double kSameTime = 1e-9;

}  // namespace

std::vector<TimeCost> LowerHull(std::vector<TimeCost> options, double same_time) {
  std::sort(options.begin(), options.end(), [](const TimeCost& a, const TimeCost& b) {
    return a.time != b.time ? a.time < b.time : a.cost < b.cost;
  });
  std::vector<TimeCost> hull;
  for (const TimeCost& option : options) {
    if (!hull.empty()) {
      if (option.cost >= hull.back().cost) continue;
      if (option.time - hull.back().time <= std::max(kSameTime * option.time, same_time)) {
        hull.back().cost = option.cost;
      } else {
        hull.push_back(option);
      }
    } else {
      hull.push_back(option);
    }
    // The last three must turn left, or the middle one lies above their chord.
    while (hull.size() >= 3) {
      const TimeCost& a = hull[hull.size() - 3];
      const TimeCost& b = hull[hull.size() - 2];
      const TimeCost& c = hull.back();
      // Quotients: products of such differences may overflow or underflow.
      const double left = (a.cost - b.cost) / (b.time - a.time);
      const double right = (b.cost - c.cost) / (c.time - b.time);
      if (left > right) break;
      hull.erase(hull.end() - 2);
    }
  }
  return hull;
}

namespace {

// The longest path fits in this many bits, and so does the sum of the steepest
// slopes: their products and sums stay below 2^120, and sums of two times or
// flows below 2^62.
constexpr int kTimeBits = 58;
constexpr int kSlopeBits = 60;
constexpr Int128 kMostFlow = static_cast<Int128>(1) << 62;
// The same for the sum of costs.
constexpr int kCostBits = 122;

// Options fewer ticks apart are one option to the solver: see LowerHull().
constexpr double kSameTicks = 64;

// The exponent e with value < 2^e.
int ExponentAbove(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return exponent;
}

Result<std::vector<int>> TopologicalOrder(const TimeCostProblem& problem) {
  const int n = static_cast<int>(problem.curve_of.size());
  std::vector<int> waiting(n, 0);
  std::vector<int> first(n + 1, 0);
  for (const TimeCostPrecedence& p : problem.precedences) {
    ++waiting[p.to];
    ++first[p.from + 1];
  }
  for (int i = 0; i < n; ++i) first[i + 1] += first[i];
  std::vector<int> successors(problem.precedences.size());
  std::vector<int> next(first.begin(), first.end() - 1);
  for (const TimeCostPrecedence& p : problem.precedences) successors[next[p.from]++] = p.to;
  std::vector<int> order;
  order.reserve(n);
  for (int i = 0; i < n; ++i) {
    if (waiting[i] == 0) order.push_back(i);
  }
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int i = order[k];
    for (int j = first[i]; j < first[i + 1]; ++j) {
      if (--waiting[successors[j]] == 0) order.push_back(successors[j]);
    }
  }
  if (static_cast<int>(order.size()) < n) {
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
    return InvalidInput(
        fmt::format("the precedences form a cycle through activity {}", stuck - waiting.begin()));
  }
  return order;
}

// Slopes are rounded to multiples of this many units: of a whole number, so that
// sums of rounded slopes that should be equal are. 1 where the grid itself is
// hardly finer than the quantum.
std::int64_t QuantumUnits(const Scale& scale, double slope_quantum) {
  constexpr double kLeastUnits = 1024;
  const double units = std::ldexp(slope_quantum, scale.slope_bits);
  return units < kLeastUnits ? 1 : std::llround(units);
}

// Rounds a hull to the grid, from the slowest vertex on.
Curve RoundCurve(const std::vector<TimeCost>& hull, const Scale& scale, double slope_quantum) {
  Curve curve;
  const std::int64_t quantum_units = QuantumUnits(scale, slope_quantum);
  const TimeCost& slowest = hull.back();
  curve.lengths.push_back(scale.TicksDown(slowest.time));
  curve.slowest_cost = slowest.cost;
  double cost = slowest.cost;  // Of the rounded curve at lengths.back().
  for (auto vertex = hull.rbegin() + 1; vertex != hull.rend(); ++vertex) {
    const std::int64_t length = scale.TicksDown(vertex->time);
    const double width = scale.Time(curve.lengths.back() - length);
    if (!(width > 0)) continue;
    // Slopes must not fall. Aim at the vertex's own cost, so that errors do not
    // add up.
    const double floor = curve.capacities.empty() ? 0 : scale.Slope(curve.capacities.back());
    double slope = (vertex->cost - cost) / width;
    if (slope_quantum > 0) {
      // Keep rounding errors of a wide neighbour from piling up on a narrow one.
      slope = std::min(slope, (vertex->cost - (vertex - 1)->cost) / width + slope_quantum);
    }
    slope = std::max(floor, slope);
    const auto quanta =
        std::llround(std::ldexp(slope, scale.slope_bits) / static_cast<double>(quantum_units));
    const std::int64_t units = quanta * quantum_units;
    const double rounded = scale.Slope(units);
    cost += rounded * width;
    curve.cost_above = std::max(curve.cost_above, cost - vertex->cost);
    curve.cost_below = std::max(curve.cost_below, vertex->cost - cost);
    if (units <= 0) {  // Free speed: the slower vertex is never used.
      curve.lengths.back() = length;
    } else if (!curve.capacities.empty() && units <= curve.capacities.back()) {
      curve.lengths.back() = length;  // The same slope goes on.
    } else {
      curve.capacities.push_back(units);
      curve.lengths.push_back(length);
    }
  }
  curve.costs.push_back(0);
  for (std::size_t k = 0; k < curve.capacities.size(); ++k) {
    curve.costs.push_back(curve.costs.back() + static_cast<Int128>(curve.capacities[k]) *
                                                   (curve.lengths[k] - curve.lengths[k + 1]));
  }
  curve.capacities.push_back(kInfinite);
  return curve;
}

}  // namespace

Result<void> CheckProblem(const TimeCostProblem& problem) {
  constexpr std::size_t kMostItems = std::size_t{1} << 28;
  if (problem.curve_of.size() + problem.precedences.size() > kMostItems) {
    return MakeError(ErrorCode::kOverflow,
                     fmt::format("{} activities and {} precedences are more than {} together",
                                 problem.curve_of.size(), problem.precedences.size(), kMostItems));
  }
  const int n = static_cast<int>(problem.curve_of.size());
  if (n == 0) return InvalidInput("the problem has no activity");
  for (std::size_t c = 0; c < problem.curves.size(); ++c) {
    if (problem.curves[c].empty()) {
      return InvalidInput(fmt::format("curve {} has no option", c));
    }
    for (const TimeCost& option : problem.curves[c]) {
      if (!(option.time >= 0) || !std::isfinite(option.time) || !std::isfinite(option.cost)) {
        return InvalidInput(fmt::format(
            "curve {} has an option with time {} and cost {}; expected a finite time >= 0 and a "
            "finite cost",
            c, option.time, option.cost));
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    if (problem.curve_of[i] < 0 || problem.curve_of[i] >= static_cast<int>(problem.curves.size())) {
      return InvalidInput(
          fmt::format("activity {} has curve {}, which does not exist", i, problem.curve_of[i]));
    }
  }
  for (const TimeCostPrecedence& p : problem.precedences) {
    if (p.from < 0 || p.from >= n || p.to < 0 || p.to >= n) {
      return InvalidInput(
          fmt::format("precedence {} -> {} names an activity that does not exist", p.from, p.to));
    }
    if (!(p.delay >= 0) || !std::isfinite(p.delay)) {
      return InvalidInput(
          fmt::format("precedence {} -> {} has delay {}; expected >= 0", p.from, p.to, p.delay));
    }
  }
  if (!problem.earliest_start.empty() && problem.earliest_start.size() != problem.curve_of.size()) {
    return InvalidInput(fmt::format("earliest_start has {} entries for {} activities",
                                    problem.earliest_start.size(), n));
  }
  for (double start : problem.earliest_start) {
    if (!(start >= 0) || !std::isfinite(start)) {
      return InvalidInput(fmt::format("an earliest start is {}; expected >= 0", start));
    }
  }
  if (!(problem.end_delay >= 0) || !std::isfinite(problem.end_delay)) {
    return InvalidInput(fmt::format("the end delay is {}; expected >= 0", problem.end_delay));
  }
  return {};
}

std::int64_t Scale::TicksDown(double time) const {
  return static_cast<std::int64_t>(std::floor(std::ldexp(time, time_bits)));
}
double Scale::Time(std::int64_t ticks) const {
  return std::ldexp(static_cast<double>(ticks), -time_bits);
}
double Scale::Slope(std::int64_t units) const {
  return std::ldexp(static_cast<double>(units), -slope_bits);
}
double Scale::Cost(Int128 units) const {
  return std::ldexp(static_cast<double>(units), -time_bits - slope_bits);
}

Result<Network> Network::Build(const TimeCostProblem& problem, double slope_quantum) {
  if (!(slope_quantum >= 0) || !std::isfinite(slope_quantum)) {
    return InvalidInput(
        fmt::format("the slope quantum is {}; expected a number >= 0", slope_quantum));
  }
  if (auto checked = CheckProblem(problem); !checked) return tl::unexpected(checked.error());
  auto order = TopologicalOrder(problem);
  if (!order) return tl::unexpected(order.error());

  Network network;
  const int n = static_cast<int>(problem.curve_of.size());
  network.num_activities = n;
  network.num_precedences = static_cast<int>(problem.precedences.size());
  network.curve_of = problem.curve_of;
  network.topological_order = *std::move(order);

  std::vector<std::vector<TimeCost>> hulls;
  hulls.reserve(problem.curves.size());
  for (const auto& options : problem.curves) hulls.push_back(LowerHull(options, 0));

  // The grid: the longest path and the sum of slopes use their bits fully.
  std::vector<double> ready(n, 0);
  if (!problem.earliest_start.empty()) ready = problem.earliest_start;
  double horizon = 0;
  std::vector<std::vector<const TimeCostPrecedence*>> out(n);
  std::vector<bool> has_predecessor(n, false);
  for (const TimeCostPrecedence& p : problem.precedences) {
    out[p.from].push_back(&p);
    has_predecessor[p.to] = true;
  }
  for (const int i : network.topological_order) {
    const std::vector<TimeCost>& hull = hulls[problem.curve_of[i]];
    const double end = ready[i] + hull.back().time;
    horizon = std::max(horizon, end);
    for (const TimeCostPrecedence* p : out[i])
      ready[p->to] = std::max(ready[p->to], end + p->delay);
  }
  horizon += problem.end_delay;
  network.scale.time_bits = kTimeBits - (horizon > 0 ? ExponentAbove(horizon) : 0);
  for (auto& hull : hulls) hull = LowerHull(std::move(hull), kSameTicks * network.scale.Time(1));

  double slope_sum = 0;
  double cost_range = 0;  // Of all options, on the hull or not.
  std::vector<bool> used(hulls.size(), false);
  for (const int c : network.curve_of) {
    const auto by_cost = [](const TimeCost& a, const TimeCost& b) { return a.cost < b.cost; };
    const auto [least, most] =
        std::minmax_element(problem.curves[c].begin(), problem.curves[c].end(), by_cost);
    cost_range += most->cost - least->cost;
    used[c] = true;
    const std::vector<TimeCost>& hull = hulls[c];
    if (hull.size() < 2) continue;
    slope_sum += (hull[0].cost - hull[1].cost) / (hull[1].time - hull[0].time) + slope_quantum;
  }
  if (!std::isfinite(horizon) || !std::isfinite(slope_sum) || !std::isfinite(cost_range)) {
    return MakeError(ErrorCode::kOverflow, "times or costs are too large to add up");
  }
  network.scale.slope_bits = kSlopeBits - (slope_sum > 0 ? ExponentAbove(slope_sum) : 0);
  if (cost_range > 0) {
    network.scale.slope_bits = std::min(
        network.scale.slope_bits, kCostBits - network.scale.time_bits - ExponentAbove(cost_range));
  }
  for (std::size_t c = 0; c < hulls.size(); ++c) {
    // A curve that nobody uses is in none of the sums above.
    network.curves.push_back(RoundCurve(used[c] ? hulls[c] : std::vector<TimeCost>{{0, 0}},
                                        network.scale, slope_quantum));
  }

  // The flow is at most the sum of the steepest slopes.
  Int128 most_flow = 0;
  for (const int c : network.curve_of) {
    const std::vector<std::int64_t>& capacities = network.curves[c].capacities;
    if (capacities.size() >= 2) most_flow += capacities[capacities.size() - 2];
  }
  if (most_flow > kMostFlow) {
    return MakeError(ErrorCode::kOverflow, "the slopes are too far apart to add up in 62 bits");
  }

  for (int i = 0; i < n; ++i) network.arcs.push_back({StartNode(i), EndNode(i), 0});
  for (const TimeCostPrecedence& p : problem.precedences) {
    network.arcs.push_back({EndNode(p.from), StartNode(p.to), network.scale.TicksDown(p.delay)});
  }
  for (int i = 0; i < n; ++i) {
    const double start = problem.earliest_start.empty() ? 0 : problem.earliest_start[i];
    if (!has_predecessor[i] || start > 0) {
      network.arcs.push_back({kSource, StartNode(i), network.scale.TicksDown(start)});
    }
    if (out[i].empty()) {
      network.arcs.push_back({EndNode(i), kSink, network.scale.TicksDown(problem.end_delay)});
    }
  }

  network.first_incidence.assign(network.num_nodes() + 1, 0);
  for (const Arc& arc : network.arcs) {
    ++network.first_incidence[arc.tail + 1];
    ++network.first_incidence[arc.head + 1];
  }
  for (int v = 0; v < network.num_nodes(); ++v) {
    network.first_incidence[v + 1] += network.first_incidence[v];
  }
  network.incidences.resize(2 * network.arcs.size());
  std::vector<int> next(network.first_incidence.begin(), network.first_incidence.end() - 1);
  for (int a = 0; a < static_cast<int>(network.arcs.size()); ++a) {
    const Arc& arc = network.arcs[a];
    network.incidences[next[arc.tail]++] = {a, arc.head};
    network.incidences[next[arc.head]++] = {a, arc.tail};
  }
  return network;
}

std::vector<std::int64_t> Network::LongestToSink(bool slowest) const {
  std::vector<std::int64_t> longest(num_nodes(), -1);
  longest[kSink] = 0;
  const auto relax = [&](int node) {
    for (const Incidence& incidence : IncidencesOf(node)) {
      const Arc& arc = arcs[incidence.arc];
      if (arc.tail != node || longest[arc.head] < 0) continue;
      std::int64_t length = arc.length;
      if (incidence.arc < num_activities) {
        const Curve& curve = CurveOf(incidence.arc);
        length = slowest ? curve.lengths.front() : curve.lengths.back();
      }
      longest[node] = std::max(longest[node], longest[arc.head] + length);
    }
  };
  for (auto i = topological_order.rbegin(); i != topological_order.rend(); ++i) {
    relax(EndNode(*i));
    relax(StartNode(*i));
  }
  relax(kSource);
  return longest;
}

}  // namespace perseus::frontier
