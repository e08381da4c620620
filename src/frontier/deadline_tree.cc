// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The spanning tree of a deadline program: which arcs are in it and at which
// bounds, which arcs at the border of a subtree are violated, and how a subtree
// moves in time or to another place. See deadline_program.cc.

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

void DeadlineProgram::CollectSubtree(int top) {
  subtree_room_.resize(nodes_.size() + 1);
  int* const list = subtree_room_.data();
  list[0] = top;
  std::size_t count = 1;
  for (std::size_t k = 0; k < count; ++k) {
    const int v = list[k];
    in_subtree_[v] = 1;
    const int parent_arc = nodes_[v].parent_arc;
    // Without a branch, which nobody could predict.
    for (const Network::Incidence& incidence : network_->IncidencesOf(v)) {
      list[count] = incidence.other;
      count += static_cast<std::size_t>(in_tree_[incidence.arc] &
                                        static_cast<int>(incidence.arc != parent_arc));
    }
    if (v == Network::kSink && in_tree_.back() != 0) list[count++] = Network::kSource;
  }
  subtree_size_ = count;
  work_ += static_cast<std::int64_t>(count);
}

// Makes candidates of the arcs at the border of the subtree that are violated now that it has
// moved by `change`. All that were before are candidates already. A precedence that has no flow
// is only violated where its ends are too near: where they went apart, it is not looked at.
void DeadlineProgram::OfferAround(std::int64_t change) {
  const auto offer = [this](int index) {
    bool forward = false;
    if ((in_tree_[index] | is_candidate_[index]) != 0 || Violation(index, &forward) == 0) return;
    is_candidate_[index] = 1;
    candidates_.push_back(index);
  };
  for (const int v : Subtree()) {
    // Precedences lead from the ends of activities to starts.
    const bool leads_away = v == Network::kSource || (v > Network::kSink && v % 2 == 1);
    if (leads_away == (change < 0) && v > Network::kSink) {
      const int activity = (v - Network::StartNode(0)) / 2;
      if (!in_subtree_[v ^ 1]) offer(activity);
      continue;
    }
    for (const Network::Incidence& incidence : network_->IncidencesOf(v)) {
      if (!in_subtree_[incidence.other]) offer(incidence.arc);
    }
  }
  offer(static_cast<int>(arcs_.size()) - 1);
  for (const int v : Subtree()) in_subtree_[v] = 0;
}

void DeadlineProgram::ShiftSubtree(int top, std::int64_t change) {
  if (change == 0) return;
  CollectSubtree(top);
  for (const int v : Subtree()) nodes_[v].time += change;
  OfferAround(change);
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
  CollectSubtree(new_top);
  for (const int v : Subtree()) {
    nodes_[v].time += change;
    nodes_[v].depth = nodes_[nodes_[v].parent].depth + 1;
  }
  OfferAround(change);
}

}  // namespace perseus::frontier
