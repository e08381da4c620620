// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A deadline program from prices that are nearly right.
//
// Any flow is a bound, and a spanning tree that carries it is a basis. The prices come from
// a larger problem of which this one is a part, so its own tree, as far as it is in the part, is
// nearly right as well. The tree is grown from the sink, along arcs that can take flow
// towards it, so that it is strongly feasible (see walk.cc): first those whose flow is between its
// bounds, as nothing else may be outside the tree; then those of the larger tree; then any.
// Arcs that ought to be in the tree and close a cycle there push their flow around it until
// one of them is at a bound. What is left are ordinary pivots.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "frontier/deadline_program.h"

namespace perseus::frontier {

// A flow that is at no bound, so that its arc has to be in the tree.
bool DeadlineProgram::IsBetweenBounds(int index) const {
  const std::int64_t flow = arcs_[index].flow;
  if (flow == 0 || index >= network_->num_activities) return flow > 0;
  const Curve& curve = network_->CurveOf(index);
  return curve.capacities[LevelOfFlow(curve, flow)] != flow;
}

void DeadlineProgram::SetLevel(int activity, bool in_tree, bool child_is_tail) {
  Arc& arc = arcs_[activity];
  const Curve& curve = network_->CurveOf(activity);
  const int level = LevelOfFlow(curve, arc.flow);
  const bool at_bound = arc.flow == 0 || arc.flow == curve.capacities[level];
  if (!at_bound) {
    arc.level = level;
  } else if (in_tree) {
    arc.level = arc.flow == 0 ? 0 : level + (child_is_tail ? 1 : 0);
  } else {
    arc.level = arc.flow == 0 ? -1 : level;
  }
}

// The tree, its times, and the arcs that should have been in it.
std::vector<int> DeadlineProgram::GrowTree(std::span<const ArcStart> starts) {
  const int return_arc = static_cast<int>(arcs_.size()) - 1;
  const int activities = network_->num_activities;
  std::vector<std::uint8_t> between(arcs_.size(), 0);
  for (int a = 0; a <= return_arc; ++a) between[a] = IsBetweenBounds(a) ? 1 : 0;
  // Candidates by what is best, and of equal ones the last: (arc, node in the tree).
  std::array<std::vector<std::pair<int, int>>, 5> reached;
  const auto reach_from = [&](int v) {
    for (const Network::Incidence& incidence : network_->IncidencesOf(v)) {
      if (nodes_[incidence.other].depth >= 0) continue;
      const int a = incidence.arc;
      if (arcs_[a].head == incidence.other && arcs_[a].flow == 0) continue;
      const bool outer = v <= Network::kSink || incidence.other <= Network::kSink;
      const std::size_t rank = between[a] != 0                         ? (outer ? 1 : 0)
                               : starts[a].in_tree                     ? 2
                               : a >= activities || arcs_[a].flow == 0 ? 3
                                                                       : 4;
      reached[rank].emplace_back(a, v);
    }
    if (v == Network::kSink && between[return_arc] != 0) reached[0].emplace_back(return_arc, v);
  };
  const auto attach = [&](int child, int parent, int index) {
    Arc& arc = arcs_[index];
    const bool child_is_tail = arc.tail == child;
    in_tree_[index] = 1;
    if (index < activities) {
      SetLevel(index, /*in_tree=*/true, child_is_tail);
      SetTreeBounds(index);
    }
    const std::int64_t length = TreeLength(index);
    nodes_[child] = {.time = nodes_[parent].time + (child_is_tail ? -length : length),
                     .parent = parent,
                     .parent_arc = index,
                     .depth = nodes_[parent].depth + 1};
    reach_from(child);
  };
  reach_from(Network::kSink);
  for (;;) {
    const auto best = std::find_if(reached.begin(), reached.end(),
                                   [](const auto& some) { return !some.empty(); });
    if (best == reached.end()) break;
    const auto [index, parent] = best->back();
    best->pop_back();
    const int child = arcs_[index].tail == parent ? arcs_[index].head : arcs_[index].tail;
    if (nodes_[child].depth < 0) attach(child, parent, index);
  }
  std::vector<int> outside;
  for (int a = 0; a <= return_arc; ++a) {
    if (in_tree_[a] != 0) continue;
    if (between[a] != 0) outside.push_back(a);
    if (a >= activities) continue;
    SetLevel(a, /*in_tree=*/false, false);
    if (between[a] != 0) {
      const std::int64_t length = TreeLength(a);
      arcs_[a].forward_length = length;
      arcs_[a].backward_length = length;
    } else {
      SetOutsideLengths(a);
    }
  }
  return outside;
}

std::optional<DeadlineProgram> DeadlineProgram::FromFlow(const Network& network,
                                                         std::span<const ArcStart> starts,
                                                         std::int64_t deadline) {
  std::optional<DeadlineProgram> program = DeadlineProgram(network, starts, deadline);
  const std::vector<int> outside = program->GrowTree(starts);
  for (const int a : outside) {
    Arc& arc = program->arcs_[a];
    if (a >= network.num_activities) arc.backward_length = arc.forward_length;
    bool forward = false;
    const std::int64_t violation = program->Violation(a, &forward);
    // As it stands outside the tree on the side that it comes from.
    if (a >= network.num_activities) arc.backward_length = kNever;
    if (a < network.num_activities && forward) --arc.level;
    if (!program->Pivot(a, forward, violation)) return std::nullopt;
  }
  for (int a = 0; a < static_cast<int>(program->arcs_.size()); ++a) {
    bool forward = false;
    if (program->in_tree_[a] != 0 || program->is_candidate_[a] != 0) continue;
    if (program->Violation(a, &forward) == 0) continue;
    program->is_candidate_[a] = 1;
    program->candidates_.push_back(a);
  }
  if (program->Optimise(kNoLimit) != Outcome::kOptimal) return std::nullopt;
  return program;
}

DeadlineProgram::DeadlineProgram(const Network& network, std::span<const ArcStart> starts,
                                 std::int64_t deadline)
    : network_(&network),
      nodes_(network.num_nodes(), {.time = 0, .parent = -1, .parent_arc = -1, .depth = -1}),
      in_tree_(network.arcs.size() + 1, 0),
      is_candidate_(network.arcs.size() + 1, 0),
      fixed_length_(network.num_activities, kNever),
      fixed_cost_(network.num_activities, 0),
      mark_of_(network.num_nodes(), 0),
      work_(network.num_nodes()) {
  arcs_.reserve(network.arcs.size() + 1);
  std::int64_t total = 0;
  for (std::size_t a = 0; a < network.arcs.size(); ++a) {
    const Network::Arc& arc = network.arcs[a];
    arcs_.push_back({.tail = arc.tail,
                     .head = arc.head,
                     .flow = starts[a].flow,
                     .lower = 0,
                     .upper = kInfinite,
                     .forward_length = arc.length,
                     .backward_length = kNever,
                     .level = -1});
    if (arc.tail == Network::kSource) total += starts[a].flow;
    objective_ += static_cast<int>(a) < network.num_activities
                      ? LagrangianCost(static_cast<int>(a))
                      : static_cast<Int128>(starts[a].flow) * arc.length;
  }
  arcs_.push_back({.tail = Network::kSink,
                   .head = Network::kSource,
                   .flow = total,
                   .lower = 0,
                   .upper = kInfinite,
                   .forward_length = -deadline,
                   .backward_length = kNever,
                   .level = -1});
  objective_ -= static_cast<Int128>(total) * deadline;
  nodes_[Network::kSink].depth = 0;
  nodes_[Network::kSink].time = deadline;
}

}  // namespace perseus::frontier
