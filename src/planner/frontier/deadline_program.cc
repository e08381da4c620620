// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/deadline_program.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

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

// A deadline program from prices that are nearly right.
//
// Any flow is a bound, and a spanning tree that carries it is a basis. The prices come from
// a larger problem of which this one is a part, so its own tree, as far as it is in the part, is
// nearly right as well. The tree is grown from the sink, along arcs that can take flow
// towards it, so that it is strongly feasible (see walk.cc): first those whose flow is between its
// bounds, as nothing else may be outside the tree; then those of the larger tree; then any.
// Arcs that ought to be in the tree and close a cycle there push their flow around it until
// one of them is at a bound. What is left are ordinary pivots.

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

// The spanning tree of a deadline program: which arcs are in it and at which
// bounds, which arcs at the border of a subtree are violated, and how a subtree
// moves in time or to another place. See deadline_program.cc.

void DeadlineProgram::SetTreeBounds(int index) {
  Arc& arc = arcs_[index];
  if (IsFixed(index)) {
    arc.lower = 0;
    arc.upper = kInfinite;
    return;
  }
  const Curve& curve = network_->CurveOf(index);
  arc.lower = arc.level == 0 ? 0 : curve.capacities[arc.level - 1];
  arc.upper = curve.capacities[arc.level];
}

void DeadlineProgram::SetOutsideLengths(int index) {
  Arc& arc = arcs_[index];
  if (IsFixed(index)) {
    arc.forward_length = fixed_length_[index];
    arc.backward_length = arc.flow > 0 ? fixed_length_[index] : kNever;
    return;
  }
  const Curve& curve = network_->CurveOf(index);
  arc.forward_length = curve.lengths[arc.level + 1];
  arc.backward_length = arc.level < 0 ? kNever : curve.lengths[arc.level];
}

std::int64_t DeadlineProgram::TreeLength(int index) const {
  if (index >= network_->num_activities) return arcs_[index].forward_length;
  if (IsFixed(index)) return fixed_length_[index];
  return network_->CurveOf(index).lengths[arcs_[index].level];
}

void DeadlineProgram::EnterTree(int index, bool forward) {
  in_tree_[index] = 1;
  if (index >= network_->num_activities) return;
  if (forward && !IsFixed(index)) ++arcs_[index].level;
  SetTreeBounds(index);
}

void DeadlineProgram::LeaveTree(int index, bool at_upper) {
  in_tree_[index] = 0;
  if (index >= network_->num_activities) return;
  if (!at_upper && !IsFixed(index)) --arcs_[index].level;
  SetOutsideLengths(index);
}

// By how much an arc outside the tree is too long (forward) or too short.
std::int64_t DeadlineProgram::Violation(int index, bool* forward) const {
  const Arc& arc = arcs_[index];
  const std::int64_t apart = nodes_[arc.head].time - nodes_[arc.tail].time;
  *forward = true;
  if (apart < arc.forward_length) return arc.forward_length - apart;
  *forward = false;
  if (arc.backward_length != kNever && apart > arc.backward_length) {
    return apart - arc.backward_length;
  }
  return 0;
}

// Moves what hangs below `top`, which is never the sink, by `change`, sets its depths anew, and
// makes candidates of the arcs at its border that are now violated.
void DeadlineProgram::MoveSubtree(int top, std::int64_t change) {
  assert(top != Network::kSink);
  subtree_room_.resize(nodes_.size() + 1);
  if (++subtree_mark_ == 0) {  // The marks have gone round.
    std::fill(mark_of_.begin(), mark_of_.end(), std::uint8_t{0});
    subtree_mark_ = 1;
  }
  // Copies of the pointers: a byte that is written might be part of any member, so the compiler
  // would read those again each time.
  int* const list = subtree_room_.data();
  Node* const nodes = nodes_.data();
  std::uint8_t* const mark_of = mark_of_.data();
  const std::uint8_t* const in_tree = in_tree_.data();
  const int* const first_incidence = network_->first_incidence.data();
  const Network::Incidence* const incidences = network_->incidences.data();
  const std::uint8_t mark = subtree_mark_;
  list[0] = top;
  std::size_t count = 1;
  for (std::size_t k = 0; k < count; ++k) {
    const int v = list[k];
    Node& node = nodes[v];
    const int parent_arc = node.parent_arc;
    node.time += change;
    node.depth = nodes[node.parent].depth + 1;
    mark_of[v] = mark;
    // Without a branch, which nobody could predict.
    const int last = first_incidence[v + 1];
    for (int i = first_incidence[v]; i < last; ++i) {
      const int arc = incidences[i].arc;
      list[count] = incidences[i].other;
      count += static_cast<std::size_t>(in_tree[arc] & static_cast<int>(arc != parent_arc));
    }
  }
  subtree_size_ = count;
  work_ += static_cast<std::int64_t>(count);
  OfferAround(change);
}

// Makes candidates of the arcs at the border of the subtree that are violated now that it has
// moved by `change`. All that were before are candidates already. A precedence that has no flow
// is only violated where its ends are too near: where they went apart, it is not looked at.
void DeadlineProgram::OfferAround(std::int64_t change) {
  const std::uint8_t* const mark_of = mark_of_.data();
  const std::uint8_t* const in_tree = in_tree_.data();
  std::uint8_t* const is_candidate = is_candidate_.data();
  const std::uint8_t mark = subtree_mark_;
  const auto offer = [&](int index) {
    bool forward = false;
    if ((in_tree[index] | is_candidate[index]) != 0 || Violation(index, &forward) == 0) return;
    is_candidate[index] = 1;
    candidates_.push_back(index);
  };
  for (const int v : Subtree()) {
    // Precedences lead from the ends of activities to starts.
    const bool leads_away = v == Network::kSource || (v > Network::kSink && v % 2 == 1);
    if (leads_away == (change < 0) && v > Network::kSink) {
      const int activity = (v - Network::StartNode(0)) / 2;
      if (mark_of[v ^ 1] != mark) offer(activity);
      continue;
    }
    for (const Network::Incidence& incidence : network_->IncidencesOf(v)) {
      if (mark_of[incidence.other] != mark) offer(incidence.arc);
    }
  }
  offer(static_cast<int>(arcs_.size()) - 1);
}

void DeadlineProgram::ShiftSubtree(int top, std::int64_t change) {
  if (change != 0) MoveSubtree(top, change);
}

void DeadlineProgram::Reroot(int top, int new_top, int new_parent, int new_parent_arc,
                             std::int64_t change) {
  for (int v = new_top, parent = new_parent, arc = new_parent_arc;;) {
    Node& node = nodes_[v];
    const int next = node.parent;
    const int next_arc = node.parent_arc;
    node.parent = parent;
    node.parent_arc = arc;
    if (v == top) break;
    parent = v;
    arc = next_arc;
    v = next;
  }
  MoveSubtree(new_top, change);
}

}  // namespace perseus::frontier
