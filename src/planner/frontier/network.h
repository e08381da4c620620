// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_NETWORK_H_
#define PERSEUS_FRONTIER_NETWORK_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "perseus/frontier.h"
#include "perseus/result.h"

namespace perseus::frontier {

// Lower convex hull, fastest first, costs strictly falling. Options whose times
// differ by at most `same_time` count as one.
std::vector<TimeCost> LowerHull(std::vector<TimeCost> options, double same_time);

__extension__ typedef __int128 Int128;

inline constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

// Time is counted in ticks of 2^-time_bits and slopes in units of
// 2^-slope_bits: powers of two, so that scaling a double is exact.
struct Scale {
  int time_bits = 0;
  int slope_bits = 0;

  std::int64_t TicksDown(double time) const;
  double Time(std::int64_t ticks) const;
  double Slope(std::int64_t units) const;
  double Cost(Int128 units) const;
};

// A convex decreasing piecewise linear curve in integers, slowest vertex
// first. Level k means "at vertex k": its duration is lengths[k], and the
// price of time there lies between capacities[k - 1] (0 for k = 0) and
// capacities[k], the slope to the next faster vertex; kInfinite in the last.
struct Curve {
  std::vector<std::int64_t> lengths;     // Strictly decreasing.
  std::vector<std::int64_t> capacities;  // Strictly increasing.
  std::vector<Int128> costs;             // At each vertex, above that at lengths[0].
  double slowest_cost = 0;               // Cost at lengths[0].
  // Largest rounding of a vertex's cost upwards and downwards.
  double cost_above = 0;
  double cost_below = 0;
};

// The event-on-node network of a problem. Node 0 is the source, node 1 the
// sink, activity i starts at node 2 + 2 i and ends at node 3 + 2 i. Arc i < n
// is activity i; then come the precedences in their order, then arcs from the
// source and to the sink.
struct Network {
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static int StartNode(int activity) { return 2 + 2 * activity; }
  static int EndNode(int activity) { return 3 + 2 * activity; }

  struct Arc {
    int tail = 0;
    int head = 0;
    std::int64_t length = 0;  // Of a precedence; activities have a curve.
  };
  struct Incidence {
    int arc = 0;
    int other = 0;  // The node at the other end.
  };

  Scale scale;
  int num_activities = 0;
  int num_precedences = 0;
  std::vector<Curve> curves;
  std::vector<int> curve_of;
  std::vector<Arc> arcs;
  std::vector<int> topological_order;  // Of the activities.
  std::vector<int> first_incidence;    // [node], size nodes + 1
  std::vector<Incidence> incidences;

  int num_nodes() const { return 2 + 2 * num_activities; }
  std::span<const Incidence> IncidencesOf(int node) const {
    return {incidences.data() + first_incidence[node],
            incidences.data() + first_incidence[node + 1]};
  }
  const Curve& CurveOf(int activity) const { return curves[curve_of[activity]]; }

  // Checks the problem and rounds it to the grid. `slope_quantum` as in
  // FrontierOptions.
  static Result<Network> Build(const TimeCostProblem& problem, double slope_quantum);

  // Longest path from each node to the sink with every activity at
  // lengths[0] (slowest) or lengths.back().
  std::vector<std::int64_t> LongestToSink(bool slowest) const;
};

// Checks a problem: no empty curve, indices in range, finite numbers. Cycles are found later.
Result<void> CheckProblem(const TimeCostProblem& problem);

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_NETWORK_H_
