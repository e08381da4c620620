// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/walk.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

// The exact parametric frontier.
//
// Problem. Minimise the sum of convex piecewise linear costs c_i(d_i) of
// activity durations such that the longest path is at most T, for every T at
// once. The dual of this linear program is a minimum-cost flow from source to
// sink in which the flow x_i on an activity is the price of its time: at a
// vertex of c_i the price lies between the slopes on both sides, inside a
// segment it equals the slope. The flow's value F is -d(cost)/dT (Fulkerson
// 1961, Kelley 1961; Ahuja, Hochbaum and Orlin 2003 for convex costs).
//
// Method. A parametric primal network simplex. Add an arc from sink to source
// of length -T. A basis is a spanning tree of tight arcs; that arc splits it
// into a source tree and a sink tree. When T falls by one, every event on the
// sink side moves one tick earlier: one number, `shift_`. Only arcs between
// the sides change their slack, and the first to become tight is the next
// pivot; a heap keyed by the shift at which that happens finds it. The pivot pushes flow around the
// cycle source ~> entering arc ~> sink as far as it goes; the arc that blocks leaves the tree, and
// the subtree that hung on it changes sides. Between two pivots at different shifts the cost is
// linear with slope F: a breakpoint of the frontier.
//
// Why it ends. The tree is kept strongly feasible (Cunningham 1976): from each
// node some flow can be sent along the tree to the sink, where the arc from
// sink to source takes any amount. It is so at the start (latest start times,
// no flow, every arc points to the sink) and the rule "of several blocking
// arcs, the last on the cycle leaves" keeps it so. At one T, pivots are then
// those of a primal simplex method that cannot cycle; T never rises.
//
// Exactness. Times, prices and costs are integers; there is no tolerance. The
// end is an augmenting path without bound: every activity on it is at its
// fastest, and no schedule is faster.
//
// Cost. A side changes by labels. A subtree that moves gets the label of the
// other side's root; or, where that is less, what it leaves behind gets a fresh
// label and the old labels of that side change sides all at once. So a pivot
// costs the length of its cycle plus the smaller part of the side that it
// splits (times log n for the heap). Measured tables need about 10 to 30 pivots
// a breakpoint, most of them without flow and small; tables that tie, such as
// modelled ones with equal stages, a few times more.

namespace perseus::frontier {
namespace {

// Heap with the least shift on top; of equal ones the last offered, which
// needs a third of the pivots that the first or the order of arcs would.
struct LaterEvent {
  template <typename Event>
  bool operator()(const Event& a, const Event& b) const {
    return a.shift != b.shift ? a.shift > b.shift : a.sequence < b.sequence;
  }
};

}  // namespace

Walk::Walk(const Network& network) : network_(&network) {
  const std::vector<std::int64_t> to_sink = network.LongestToSink(/*slowest=*/true);
  slowest_time_ = to_sink[Network::kSource];
  nodes_.resize(network.num_nodes());
  label_.assign(network.num_nodes(), 1);
  on_sink_side_[1] = 1;
  for (int v = 0; v < network.num_nodes(); ++v) {
    nodes_[v] = {.base = slowest_time_ - to_sink[v],
                 .parent = -1,
                 .parent_arc = -1,
                 .first_child = -1,
                 .next = -1,
                 .previous = -1};
  }
  arcs_.resize(network.arcs.size());
  flows_.assign(network.arcs.size(), {.flow = 0, .lower = 0, .upper = kInfinite});
  subtree_.resize(network.num_nodes());
  rest_.resize(network.num_nodes());
  for (int a = 0; a < static_cast<int>(arcs_.size()); ++a) {
    const Network::Arc& arc = network.arcs[a];
    arcs_[a] = {.forward_length = arc.length,
                .backward_length = kNever,
                .tail = arc.tail,
                .head = arc.head,
                .level = -1,
                .in_tree = false};
    if (a < network.num_activities) {
      arcs_[a].forward_length = network.CurveOf(a).lengths.front();
    }
    // The first tight arc that leaves a node on a longest path joins the tree.
    if (nodes_[arc.tail].parent < 0 &&
        to_sink[arc.tail] == to_sink[arc.head] + arcs_[a].forward_length) {
      Hang(arc.tail, arc.head, a);
      EnterTree(a, 0);
    }
  }
  SplitTree();
  SettleCorner();
}

// Puts an arc into the tree, an activity at the given vertex of its curve.
void Walk::EnterTree(int index, int level) {
  arcs_[index].in_tree = true;
  if (index >= network_->num_activities) return;
  const Curve& curve = network_->CurveOf(index);
  arcs_[index].level = level;
  flows_[index].lower = level == 0 ? 0 : curve.capacities[level - 1];
  flows_[index].upper = curve.capacities[level];
}

// Takes an arc out of the tree, its flow at one of its bounds.
void Walk::LeaveTree(int index, bool at_upper) {
  arcs_[index].in_tree = false;
  if (index >= network_->num_activities) return;
  Arc& arc = arcs_[index];
  const Curve& curve = network_->CurveOf(index);
  if (!at_upper) --arc.level;
  arc.forward_length = curve.lengths[arc.level + 1];
  arc.backward_length = arc.level < 0 ? kNever : curve.lengths[arc.level];
}

// The shift at which an arc between the sides becomes tight, or kNever.
std::int64_t Walk::CrossingShift(int index) const {
  const Arc& arc = arcs_[index];
  const bool head_on_sink_side = OnSinkSide(arc.head);
  if (OnSinkSide(arc.tail) == head_on_sink_side) return kNever;
  const std::int64_t apart = Base(arc.head) - Base(arc.tail);
  if (head_on_sink_side) return apart - arc.forward_length;
  return arc.backward_length == kNever ? kNever : arc.backward_length - apart;
}

// Queues an arc outside the tree for the shift at which it becomes tight.
void Walk::Offer(int index) {
  const std::int64_t shift = CrossingShift(index);
  if (shift == kNever) return;
  if (heap_.size() >= most_events_) DropOutdatedEvents();
  heap_.push_back({shift, offers_++, index});
  std::push_heap(heap_.begin(), heap_.end(), LaterEvent());
}

// Outdated events would only go when they come up. What becomes crossing again
// is offered again.
void Walk::DropOutdatedEvents() {
  std::erase_if(heap_, [this](const Event& event) {
    return arcs_[event.arc].in_tree || CrossingShift(event.arc) != event.shift;
  });
  std::make_heap(heap_.begin(), heap_.end(), LaterEvent());
  most_events_ = std::max(most_events_, 2 * heap_.size());
}

// The first pivot: the arc from sink to source enters. Flow goes along the
// tree from the source to the sink; the last blocking arc leaves.
void Walk::SplitTree() {
  std::int64_t push = kInfinite;
  int leaving_child = -1;
  for (int v = Network::kSource; v != Network::kSink; v = nodes_[v].parent) {
    const std::int64_t room = flows_[nodes_[v].parent_arc].upper;
    if (room != kInfinite && room <= push) {
      push = room;
      leaving_child = v;
    }
  }
  ++pivots_;
  if (leaving_child < 0) return;  // Nothing on a longest path can be faster.
  for (int v = Network::kSource; v != Network::kSink; v = nodes_[v].parent) {
    flows_[nodes_[v].parent_arc].flow += push;
  }
  flow_ = push;
  LeaveTree(nodes_[leaving_child].parent_arc, /*at_upper=*/true);
  label_[Network::kSource] = 0;  // The root of its side.
  MoveSubtree({.top = leaving_child,
               .new_top = Network::kSource,
               .new_parent = -1,
               .new_parent_arc = -1,
               .to_sink_side = false,
               .most_of_side = false});
}

void Walk::Pivot(int entering) {
  ++pivots_;
  const Arc& entered = arcs_[entering];
  const bool forward = OnSinkSide(entered.head);
  EnterTree(entering, entered.level + (forward ? 1 : 0));
  const int source_end = forward ? entered.tail : entered.head;
  const int sink_end = forward ? entered.head : entered.tail;

  // How far the flow can go, and the last arc on the cycle that blocks it. The
  // cycle starts at the sink: arc to the source, down to source_end, the
  // entering arc, up to the sink.
  std::int64_t push = kInfinite;
  int leaving_child = -1;
  const auto room_of = [](const Flow& flow, bool along) {
    if (!along) return flow.flow - flow.lower;
    return flow.upper == kInfinite ? kInfinite : flow.upper - flow.flow;
  };
  // Walking up from source_end is against the orientation: the first of equal
  // ones met here is the last on the cycle.
  // Without room anywhere the search ends: on the sink side there always is.
  int steps = 0;
  int leaving_step = 0;
  for (int v = source_end; v != Network::kSource && push > 0; v = nodes_[v].parent) {
    ++steps;
    const int arc = nodes_[v].parent_arc;
    const std::int64_t room = room_of(flows_[arc], arcs_[arc].head == v);
    if (room < push) {
      push = room;
      leaving_child = v;
      leaving_step = steps;
    }
  }
  bool most_of_side = push > 0 && 2 * leaving_step > steps;
  bool leaving_on_sink_side = false;
  bool entering_leaves = false;
  if (const std::int64_t room = room_of(flows_[entering], forward);
      room != kInfinite && room <= push) {
    push = room;
    entering_leaves = true;
  }
  work_ += steps;
  steps = 0;
  for (int v = sink_end; v != Network::kSink && push > 0; v = nodes_[v].parent) {
    ++steps;
    const int arc = nodes_[v].parent_arc;
    const std::int64_t room = room_of(flows_[arc], arcs_[arc].tail == v);
    if (room != kInfinite && room <= push) {
      push = room;
      leaving_child = v;
      leaving_on_sink_side = true;
      entering_leaves = false;
      leaving_step = steps;
    }
  }
  work_ += steps;
  if (leaving_on_sink_side) most_of_side = 2 * leaving_step > steps;
  if (push == kInfinite) {  // The fastest time.
    LeaveTree(entering, /*at_upper=*/!forward);
    next_shift_ = -1;
    return;
  }
  if (push > 0) {
    for (int v = source_end; v != Network::kSource; v = nodes_[v].parent) {
      const int arc = nodes_[v].parent_arc;
      flows_[arc].flow += arcs_[arc].head == v ? push : -push;
    }
    flows_[entering].flow += forward ? push : -push;
    for (int v = sink_end; v != Network::kSink; v = nodes_[v].parent) {
      const int arc = nodes_[v].parent_arc;
      flows_[arc].flow += arcs_[arc].tail == v ? push : -push;
    }
    flow_ += push;
  }
  if (entering_leaves) {
    LeaveTree(entering, /*at_upper=*/forward);
    Offer(entering);
    return;
  }
  const int leaving = nodes_[leaving_child].parent_arc;
  const bool along =
      arcs_[leaving].tail == leaving_child ? leaving_on_sink_side : !leaving_on_sink_side;
  LeaveTree(leaving, /*at_upper=*/along);
  MoveSubtree({.top = leaving_child,
               .new_top = leaving_on_sink_side ? sink_end : source_end,
               .new_parent = leaving_on_sink_side ? source_end : sink_end,
               .new_parent_arc = entering,
               .to_sink_side = !leaving_on_sink_side,
               .most_of_side = most_of_side});
}

// Pivots until no arc that could take flow is tight at the current shift, and
// finds the shift of the next one.
void Walk::SettleCorner() {
  while (!heap_.empty()) {
    const Event event = heap_.front();
    const bool valid = !arcs_[event.arc].in_tree && CrossingShift(event.arc) == event.shift;
    if (valid && event.shift > shift_) {
      next_shift_ = event.shift;
      return;
    }
    std::pop_heap(heap_.begin(), heap_.end(), LaterEvent());
    heap_.pop_back();
    if (!valid) continue;
    next_shift_ = shift_;
    Pivot(event.arc);
    if (next_shift_ < 0) return;
  }
  next_shift_ = -1;
}

std::size_t Walk::bytes() const {
  return arcs_.capacity() * sizeof(Arc) + flows_.capacity() * sizeof(Flow) +
         nodes_.capacity() * sizeof(Node) + label_.capacity() + heap_.capacity() * sizeof(Event) +
         (subtree_.capacity() + rest_.capacity()) * sizeof(int);
}

void Walk::Advance() {
  assert(!at_fastest());
  cost_ += static_cast<Int128>(flow_) * (next_shift_ - shift_);
  shift_ = next_shift_;
  SettleCorner();
}

std::vector<std::int64_t> Walk::EventTimes(std::int64_t deadline) const {
  const std::int64_t shift = slowest_time_ - deadline;
  std::vector<std::int64_t> times(nodes_.size());
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    times[v] = Base(static_cast<int>(v)) - (OnSinkSide(static_cast<int>(v)) ? shift : 0);
  }
  return times;
}

// The spanning tree of a walk and its two sides: how a subtree moves from one to
// the other. See walk.cc for the method, and for what this costs.

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
