// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/bound/block_network.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace perseus::plan {

using frontier::Int128;
using frontier::Network;
using ArcStart = frontier::DeadlineProgram::ArcStart;

BlockNetwork::BlockNetwork(const Network& whole, const frontier::DeadlineProgram& relaxation,
                           std::int64_t deadline)
    : PartNetwork(whole, relaxation) {
  const auto size = static_cast<std::size_t>(whole.num_activities);
  limits_ = {.length = std::vector<std::int64_t>(size),
             .earliest_end = std::vector<std::int64_t>(size),
             .latest_start = std::vector<std::int64_t>(size)};
  for (int i = 0; i < whole.num_activities; ++i)
    limits_.length[i] = whole.CurveOf(i).lengths.back();
  PushEarliest(whole, whole.topological_order, &limits_);
  PullLatest(whole, whole.topological_order, deadline, &limits_);
}

void BlockNetwork::Cut(std::span<const int> activities) {
  const int size = static_cast<int>(activities.size());
  Begin(activities);
  network_.curves = whole_.curves;  // Behind which those of borders come.
  std::int64_t first = frontier::kInfinite;
  std::int64_t last = 0;
  for (const int i : activities) {
    first = std::min(first, limits_.earliest_end[i] - limits_.length[i]);
    last = std::max(last, limits_.latest_start[i] + limits_.length[i]);
  }
  time_ = last - first;
  std::vector<Border> borders;
  std::vector<Network::Arc> inner;
  std::vector<ArcStart> inner_starts;
  for (int k = 0; k < size; ++k) {
    const int i = activities[k];
    Border before{k,
                  0,
                  0,
                  limits_.earliest_end[i] - limits_.length[i] - first,
                  limits_.latest_start[i] - first,
                  true};
    Border after{k,
                 0,
                 0,
                 last - limits_.latest_start[i] - limits_.length[i],
                 last - limits_.earliest_end[i],
                 false};
    const auto other_of = [](int node) { return node < 2 ? -1 : (node - 2) / 2; };
    for (const Network::Incidence& each : whole_.IncidencesOf(Network::StartNode(i))) {
      const Network::Arc& arc = whole_.arcs[each.arc];
      if (arc.head != Network::StartNode(i)) continue;
      const int other = other_of(arc.tail);
      const ArcStart start = relaxation_.StartOf(each.arc);
      if (other >= 0 && local_[other] >= 0) {
        inner.push_back({Network::EndNode(local_[other]), Network::StartNode(k), arc.length});
        inner_starts.push_back(start);
        continue;
      }
      before.flow += start.flow;
      if (other >= 0) before.price += start.flow;  // Starts are kept as they are.
    }
    for (const Network::Incidence& each : whole_.IncidencesOf(Network::EndNode(i))) {
      const Network::Arc& arc = whole_.arcs[each.arc];
      if (arc.tail != Network::EndNode(i)) continue;
      const int other = other_of(arc.head);
      if (other >= 0 && local_[other] >= 0) continue;
      const std::int64_t flow = relaxation_.StartOf(each.arc).flow;
      after.flow += flow;
      if (other >= 0) after.price += flow;  // The deadline is kept as it is.
    }
    borders.push_back(before);
    borders.push_back(after);
  }
  for (const int i : activities) local_[i] = -1;

  // Nodes are numbered by activity: those of the borders come behind.
  std::vector<int> befores, afters;
  std::vector<Network::Arc> outer;
  std::vector<ArcStart> outer_starts;
  for (const Border& border : borders) {
    outer_starts.push_back({border.flow, false});
    const int node =
        border.at_start ? Network::StartNode(border.activity) : Network::EndNode(border.activity);
    if (border.price == 0 || border.most <= border.least) {
      // It cannot be paid for, but it has its earliest and its latest time.
      outer.push_back(border.at_start ? Network::Arc{Network::kSource, node, border.least}
                                      : Network::Arc{node, Network::kSink, border.least});
      continue;
    }
    const int own = network_.num_activities++;
    starts_.push_back({border.flow, false});
    inner_starts.push_back({border.flow, false});
    (border.at_start ? befores : afters).push_back(own);
    network_.curve_of.push_back(static_cast<int>(network_.curves.size()));
    network_.curves.push_back(
        {.lengths = {border.most, border.least},
         .capacities = {border.price, frontier::kInfinite},
         .costs = {0, static_cast<Int128>(border.price) * (border.most - border.least)}});
    if (border.at_start) {
      outer.push_back({Network::kSource, Network::StartNode(own), 0});
      inner.push_back({Network::EndNode(own), node, 0});
    } else {
      inner.push_back({node, Network::StartNode(own), 0});
      outer.push_back({Network::EndNode(own), Network::kSink, 0});
    }
  }
  network_.topological_order = befores;
  for (int k = 0; k < size; ++k) network_.topological_order.push_back(k);
  network_.topological_order.insert(network_.topological_order.end(), afters.begin(), afters.end());
  for (int k = 0; k < network_.num_activities; ++k) {
    network_.arcs.push_back({Network::StartNode(k), Network::EndNode(k), 0});
  }
  network_.num_precedences = static_cast<int>(inner.size());
  network_.arcs.insert(network_.arcs.end(), inner.begin(), inner.end());
  network_.arcs.insert(network_.arcs.end(), outer.begin(), outer.end());
  starts_.insert(starts_.end(), inner_starts.begin(), inner_starts.end());
  starts_.insert(starts_.end(), outer_starts.begin(), outer_starts.end());
  IndexArcs(&network_);
}

}  // namespace perseus::plan
