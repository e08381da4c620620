// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Re-optimisation at one deadline.
//
// The program is the one of walk.cc with T fixed: a minimum-cost flow with
// convex piecewise linear arcs, and its spanning tree basis rooted at the
// sink; the arc from sink to source of length -T is an ordinary arc. Fixing
// an activity to one option replaces its curve, releasing it puts the curve
// back. Either way the flow stays feasible; only times move: the subtree
// below the activity's arc shifts, arcs at its border may come to violate
// their lengths, and primal simplex pivots on those mend it. Most changes
// touch a small part of the tree.
//
// Each pivot pushes flow `push` around a cycle that is `violation` too long:
// the optimum of the flow, which is the least cost of the activities (strong
// duality), rises by push x violation. So the cost of every option tried is
// exact, known while it rises, and a trial can stop as soon as it is worse
// than the best. A cycle that takes any amount of flow means that the fixed
// options do not fit the deadline.
//
// The tree stays strongly feasible (see walk.cc), so that ties cannot cycle.

#include "frontier/deadline_program.h"

#include <algorithm>
#include <cstddef>

namespace perseus::frontier {

DeadlineProgram::DeadlineProgram(const Network& network, const Walk& walk, std::int64_t deadline)
    : network_(&network),
      fixed_length_(network.num_activities, kNever),
      fixed_cost_(network.num_activities, 0),
      mark_of_(network.num_nodes(), 0),
      objective_(walk.cost() + static_cast<Int128>(walk.slope()) * (walk.time() - deadline)) {
  const std::vector<std::int64_t> times = walk.EventTimes(deadline);
  nodes_.resize(times.size());
  for (std::size_t v = 0; v < times.size(); ++v) {
    nodes_[v] = {.time = times[v],
                 .parent = walk.nodes_[v].parent,
                 .parent_arc = walk.nodes_[v].parent_arc,
                 .depth = -1};
  }
  arcs_.reserve(walk.arcs_.size() + 1);
  in_tree_.reserve(walk.arcs_.size() + 1);
  for (std::size_t a = 0; a < walk.arcs_.size(); ++a) {
    const Walk::Arc& arc = walk.arcs_[a];
    const Walk::Flow& flow = walk.flows_[a];
    in_tree_.push_back(arc.in_tree);
    arcs_.push_back({.tail = arc.tail,
                     .head = arc.head,
                     .flow = flow.flow,
                     .lower = flow.lower,
                     .upper = flow.upper,
                     .forward_length = arc.forward_length,
                     .backward_length = arc.backward_length,
                     .level = arc.level});
  }
  const int return_arc = static_cast<int>(arcs_.size());
  arcs_.push_back({.tail = Network::kSink,
                   .head = Network::kSource,
                   .flow = walk.slope(),
                   .lower = 0,
                   .upper = kInfinite,
                   .forward_length = -deadline,
                   .backward_length = kNever,
                   .level = -1});
  Node& source = nodes_[Network::kSource];
  in_tree_.push_back(source.parent < 0);
  if (source.parent < 0) {
    source.parent = Network::kSink;
    source.parent_arc = return_arc;
  }
  is_candidate_.assign(arcs_.size(), 0);
  nodes_[Network::kSink].depth = 0;
  std::vector<int> path;
  for (int v = 0; v < static_cast<int>(nodes_.size()); ++v) {
    for (int u = v; nodes_[u].depth < 0; u = nodes_[u].parent) path.push_back(u);
    for (; !path.empty(); path.pop_back()) {
      nodes_[path.back()].depth = nodes_[nodes_[path.back()].parent].depth + 1;
    }
  }
}

std::int64_t DeadlineProgram::Duration(int activity) const {
  return nodes_[Network::EndNode(activity)].time - nodes_[Network::StartNode(activity)].time;
}

int DeadlineProgram::Level(int activity) const { return std::max(0, arcs_[activity].level); }

// The vertex at which a flow holds the activity; at a slope between two, the
// slower.
int DeadlineProgram::LevelOfFlow(const Curve& curve, std::int64_t flow) {
  return static_cast<int>(std::lower_bound(curve.capacities.begin(), curve.capacities.end(), flow) -
                          curve.capacities.begin());
}

// min over options of cost + price x length.
Int128 DeadlineProgram::LagrangianCost(int activity) const {
  const std::int64_t flow = arcs_[activity].flow;
  if (IsFixed(activity)) {
    return fixed_cost_[activity] + static_cast<Int128>(flow) * fixed_length_[activity];
  }
  const Curve& curve = network_->CurveOf(activity);
  const int level = LevelOfFlow(curve, flow);
  return curve.costs[level] + static_cast<Int128>(flow) * curve.lengths[level];
}

// Lets `entering` take flow (or give it back), and restores the tree. False
// when nothing blocks.
bool DeadlineProgram::Pivot(int entering, bool forward, std::int64_t violation) {
  const bool superbasic = entering < network_->num_activities && IsFixed(entering);
  EnterTree(entering, forward);
  const Arc& entered = arcs_[entering];
  const int from = forward ? entered.tail : entered.head;
  const int to = forward ? entered.head : entered.tail;

  // Up from both ends to where they meet. The rule for ties is that of
  // walk.cc: the last blocking arc on the cycle, as seen from the top. Where the room of no
  // arc has an end, child_to means nothing, and is not used.
  const auto room_of = [](const Arc& arc, bool along) {
    const std::int64_t above = arc.upper == kInfinite ? kInfinite : arc.upper - arc.flow;
    return along ? above : arc.flow - arc.lower;
  };
  std::int64_t push_from = kInfinite;
  std::int64_t push_to = kInfinite;
  int child_from = -1;
  int child_to = -1;
  int u = from;
  int v = to;
  const auto climb_from = [&] {
    const Arc& arc = arcs_[nodes_[u].parent_arc];
    const std::int64_t room = room_of(arc, arc.head == u);
    child_from = room < push_from ? u : child_from;
    push_from = std::min(room, push_from);
    u = nodes_[u].parent;
  };
  const auto climb_to = [&] {
    const Arc& arc = arcs_[nodes_[v].parent_arc];
    const std::int64_t room = room_of(arc, arc.tail == v);
    child_to = room <= push_to ? v : child_to;
    push_to = std::min(room, push_to);
    v = nodes_[v].parent;
  };
  // The deeper end first, then both in step: which of them is deeper nobody could predict.
  const int depth_from = nodes_[from].depth;
  const int depth_to = nodes_[to].depth;
  for (int k = depth_to; k < depth_from; ++k) climb_from();
  for (int k = depth_from; k < depth_to; ++k) climb_to();
  while (u != v) {
    climb_from();
    climb_to();
  }
  const int top = u;
  work_ += depth_from + depth_to - 2 * nodes_[top].depth;
  const std::int64_t push_entering = room_of(entered, forward);
  const std::int64_t push = std::min({push_from, push_to, push_entering});
  if (push == kInfinite) {
    LeaveTree(entering, /*at_upper=*/!forward || superbasic);
    return false;
  }
  if (push > 0) {
    for (u = from; u != top; u = nodes_[u].parent) {
      Arc& arc = arcs_[nodes_[u].parent_arc];
      arc.flow += arc.head == u ? push : -push;
    }
    for (v = to; v != top; v = nodes_[v].parent) {
      Arc& arc = arcs_[nodes_[v].parent_arc];
      arc.flow += arc.tail == v ? push : -push;
    }
    arcs_[entering].flow += forward ? push : -push;
    objective_ += static_cast<Int128>(push) * violation;
  }
  if (push_to == push) {
    const int leaving = nodes_[child_to].parent_arc;
    LeaveTree(leaving, /*at_upper=*/arcs_[leaving].tail == child_to);
    Reroot(child_to, to, from, entering, violation);
  } else if (push_entering == push) {
    LeaveTree(entering, /*at_upper=*/forward);
    bool ignored = false;
    if (!is_candidate_[entering] && Violation(entering, &ignored) > 0) {
      is_candidate_[entering] = 1;
      candidates_.push_back(entering);
    }
  } else {
    const int leaving = nodes_[child_from].parent_arc;
    LeaveTree(leaving, /*at_upper=*/arcs_[leaving].head == child_from);
    Reroot(child_from, from, to, entering, -violation);
  }
  return true;
}

// After the activity's curve has changed, its flow has not.
void DeadlineProgram::ChangeOption(int activity) {
  Arc& arc = arcs_[activity];
  if (!in_tree_[activity]) {
    if (!IsFixed(activity)) arc.level = -1;  // A fixed activity outside the tree has no flow.
    SetOutsideLengths(activity);
    if (arc.flow > 0) {
      // The flow no longer sits at a bound. Push it the way that its length
      // asks for; where that has no end, back to zero.
      bool forward = false;
      const std::int64_t violation = Violation(activity, &forward);
      if (violation > 0 && forward && Pivot(activity, true, violation)) return;
      Pivot(activity, false, forward ? -violation : violation);
      return;
    }
    bool forward = false;
    if (Violation(activity, &forward) > 0 && !is_candidate_[activity]) {
      is_candidate_[activity] = 1;
      candidates_.push_back(activity);
    }
    return;
  }
  const bool child_is_tail = nodes_[arc.tail].parent_arc == activity;
  if (!IsFixed(activity)) {
    const Curve& curve = network_->CurveOf(activity);
    arc.level = LevelOfFlow(curve, arc.flow);
    // On a slope between two vertices: the one that keeps the tree strongly
    // feasible, with room for flow towards the root.
    if (child_is_tail && arc.flow == curve.capacities[arc.level]) ++arc.level;
  }
  SetTreeBounds(activity);
  const std::int64_t apart = nodes_[arc.head].time - nodes_[arc.tail].time;
  const std::int64_t change = TreeLength(activity) - apart;
  if (child_is_tail) {
    ShiftSubtree(arc.tail, -change);
  } else {
    ShiftSubtree(arc.head, change);
  }
}

void DeadlineProgram::SetDeadline(std::int64_t deadline) {
  const int return_arc = static_cast<int>(arcs_.size()) - 1;
  Arc& arc = arcs_[return_arc];
  const std::int64_t change = deadline + arc.forward_length;
  objective_ -= static_cast<Int128>(arc.flow) * change;
  arc.forward_length = -deadline;
  if (in_tree_[return_arc]) {
    ShiftSubtree(Network::kSource, -change);
  } else {
    bool forward = false;
    if (Violation(return_arc, &forward) > 0 && !is_candidate_[return_arc]) {
      is_candidate_[return_arc] = 1;
      candidates_.push_back(return_arc);
    }
  }
}

void DeadlineProgram::Fix(int activity, std::int64_t length, Int128 cost) {
  objective_ -= LagrangianCost(activity);
  fixed_length_[activity] = length;
  fixed_cost_[activity] = cost;
  objective_ += LagrangianCost(activity);
  ChangeOption(activity);
}

void DeadlineProgram::Release(int activity) {
  if (!IsFixed(activity)) return;
  objective_ -= LagrangianCost(activity);
  fixed_length_[activity] = kNever;
  objective_ += LagrangianCost(activity);
  ChangeOption(activity);
}

DeadlineProgram::Outcome DeadlineProgram::Optimise(Int128 limit) {
  while (!candidates_.empty()) {
    if (objective_ > limit) return Outcome::kAboveLimit;
    const int entering = candidates_.back();
    candidates_.pop_back();
    is_candidate_[entering] = 0;
    if (in_tree_[entering]) continue;
    bool forward = false;
    const std::int64_t violation = Violation(entering, &forward);
    if (violation == 0) continue;
    if (!Pivot(entering, forward, violation)) {
      is_candidate_[entering] = 1;
      candidates_.push_back(entering);
      return Outcome::kInfeasible;
    }
  }
  return objective_ > limit ? Outcome::kAboveLimit : Outcome::kOptimal;
}

}  // namespace perseus::frontier
