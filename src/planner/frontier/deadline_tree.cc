// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The spanning tree of a deadline program: which arcs are in it and at which
// bounds, which arcs at the border of a subtree are violated, and how a subtree
// moves in time or to another place. See deadline_program.cc.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "frontier/deadline_program.h"

namespace perseus::frontier {

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
