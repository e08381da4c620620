// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The spanning tree of a walk and its two sides: how a subtree moves from one to
// the other. See walk.cc for the method, and for what this costs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/walk.h"

namespace perseus::frontier {
namespace {

// How many nodes ahead a subtree is fetched from memory.
constexpr int kPrefetch = 4;
// Nodes listed of one tree before the other has its turn.
constexpr int kTurn = 64;
constexpr int kLongTurn = 256;

}  // namespace

void Walk::Hang(int node, int parent, int parent_arc) {
  Node& child = nodes_[node];
  child.parent = parent;
  child.parent_arc = parent_arc;
  child.previous = -1;
  child.next = parent < 0 ? -1 : nodes_[parent].first_child;
  if (parent < 0) return;
  if (child.next >= 0) nodes_[child.next].previous = node;
  nodes_[parent].first_child = node;
}

void Walk::Unhang(int node) {
  const Node& child = nodes_[node];
  if (child.parent < 0) return;
  if (child.next >= 0) nodes_[child.next].previous = child.previous;
  (child.previous >= 0 ? nodes_[child.previous].next : nodes_[child.parent].first_child) =
      child.next;
}

// Goes on with the list of the nodes of a tree for at most `steps` nodes. True
// when it is whole.
bool Walk::Collect(std::vector<int>* list, int* seen, int* count, int steps) const {
  const Node* const nodes = nodes_.data();
  int* const found = list->data();
  int k = *seen;
  int end = *count;
  for (; k < end && steps > 0; ++k, --steps) {
    if (k + kPrefetch < end) {
      __builtin_prefetch(&nodes[std::max(0, nodes[found[k + kPrefetch]].first_child)]);
    }
    for (int v = nodes[found[k]].first_child; v >= 0; v = nodes[v].next) found[end++] = v;
  }
  *seen = k;
  *count = end;
  return k == end;
}

// Hangs the subtree elsewhere. The arc above its top has left the tree.
void Walk::MoveSubtree(const Move& move) {
  for (int v = move.new_top, parent = move.new_parent, arc = move.new_parent_arc;;) {
    const int next = nodes_[v].parent;
    const int next_arc = nodes_[v].parent_arc;
    Unhang(v);
    Hang(v, parent, arc);
    if (v == move.top) break;
    parent = v;
    arc = next_arc;
    v = next;
  }
  // Either the subtree is relabelled or, where that is less, what it leaves
  // behind. Both are listed in turns until one list is whole.
  subtree_[0] = move.new_top;
  rest_[0] = move.to_sink_side ? Network::kSource : Network::kSink;
  int subtree_seen = 0;
  int subtree_count = 1;
  int rest_seen = 0;
  int rest_count = 1;
  bool subtree_whole = false;
  bool rest_whole = false;
  const int subtree_turn = move.most_of_side ? kTurn : kLongTurn;
  const int rest_turn = move.most_of_side ? kLongTurn : kTurn;
  while (!subtree_whole && !rest_whole) {
    subtree_whole = Collect(&subtree_, &subtree_seen, &subtree_count, subtree_turn);
    if (!subtree_whole) rest_whole = Collect(&rest_, &rest_seen, &rest_count, rest_turn);
  }
  work_ += subtree_seen + rest_seen;
  if (subtree_whole) {
    RelabelSubtree(subtree_count, move.to_sink_side);
  } else {
    RelabelRest(rest_count, move.to_sink_side);
  }
}

// The first `count` nodes of subtree_ go to the other side.
void Walk::RelabelSubtree(int count, bool to_sink_side) {
  const std::uint8_t label = label_[to_sink_side ? Network::kSink : Network::kSource];
  const std::int64_t change = offset_[label] + (to_sink_side ? shift_ : -shift_);
  for (int k = 0; k < count; ++k) {
    const int v = subtree_[k];
    nodes_[v].base += change - offset_[label_[v]];
    label_[v] = label;
  }
  OfferAcross(subtree_, count, to_sink_side ? 0 : 1, on_sink_side_.data());
}

// The first `count` nodes of rest_ get a label of their own, and all other
// nodes of their side change sides with their labels.
void Walk::RelabelRest(int count, bool to_sink_side) {
  if (labels_ == kMostLabels) MergeLabels();
  const auto label = static_cast<std::uint8_t>(labels_);
  for (int k = 0; k < count; ++k) {
    const int v = rest_[k];
    nodes_[v].base -= offset_[label_[v]];
    label_[v] = label;
  }
  std::array<std::uint8_t, kMostLabels> changed{};
  for (int other = 0; other < labels_; ++other) {
    if ((on_sink_side_[other] != 0) == to_sink_side) continue;
    changed[other] = 1;
    on_sink_side_[other] = to_sink_side ? 1 : 0;
    offset_[other] += to_sink_side ? -shift_ : shift_;
  }
  offset_[label] = 0;
  on_sink_side_[label] = to_sink_side ? 0 : 1;
  ++labels_;
  OfferAcross(rest_, count, 1, changed.data());
}

// Offers the arcs between the first `count` nodes of a list and those whose
// label has this mark. None of them is in the tree: its arcs between the sides
// have left it, and others are within what moved or what stayed.
void Walk::OfferAcross(const std::vector<int>& list, int count, std::uint8_t mark,
                       const std::uint8_t* marks) {
  const int* const first = network_->first_incidence.data();
  const Network::Incidence* const incidences = network_->incidences.data();
  const std::uint8_t* const label = label_.data();
  for (int k = 0; k < count; ++k) {
    if (k + kPrefetch < count) __builtin_prefetch(&incidences[first[list[k + kPrefetch]]]);
    const int v = list[k];
    const Network::Incidence* const end = incidences + first[v + 1];
    for (const Network::Incidence* i = incidences + first[v]; i != end; ++i) {
      if (marks[label[i->other]] == mark) Offer(i->arc);
    }
  }
}

// Back to one label for each side.
void Walk::MergeLabels() {
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    nodes_[v].base -= offset_[label_[v]];
    label_[v] = on_sink_side_[label_[v]];
  }
  offset_[0] = offset_[1] = 0;
  on_sink_side_[0] = 0;
  on_sink_side_[1] = 1;
  labels_ = 2;
}

}  // namespace perseus::frontier
