// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

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
// Cost. A pivot costs the length of its cycle plus the size of the subtree
// that changes sides (times log n for the heap). Measured tables need about 10
// to 30 pivots a breakpoint, most of them without flow; tables that tie, such
// as modelled ones with equal stages, a few times more.

#include "frontier/walk.h"

#include <algorithm>
#include <cassert>

namespace perseus::frontier {
namespace {

// How many nodes ahead a subtree is fetched from memory.
constexpr int kPrefetch = 4;

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
  sink_side_.assign(network.num_nodes(), 1);
  for (int v = 0; v < network.num_nodes(); ++v) {
    nodes_[v] = {.base = slowest_time_ - to_sink[v], .parent = -1, .parent_arc = -1};
  }
  arcs_.resize(network.arcs.size());
  in_tree_.assign(network.arcs.size(), 0);
  moved_.resize(network.num_nodes() + 1);
  border_.resize(network.arcs.size() + 1);
  for (int a = 0; a < static_cast<int>(arcs_.size()); ++a) {
    const Network::Arc& arc = network.arcs[a];
    arcs_[a] = {.tail = arc.tail,
                .head = arc.head,
                .flow = 0,
                .lower = 0,
                .upper = kInfinite,
                .forward_length = arc.length,
                .backward_length = kNever,
                .level = -1};
    if (a < network.num_activities) {
      arcs_[a].forward_length = network.CurveOf(a).lengths.front();
    }
    // The first tight arc that leaves a node on a longest path joins the tree.
    Node& tail = nodes_[arc.tail];
    if (tail.parent < 0 && to_sink[arc.tail] == to_sink[arc.head] + arcs_[a].forward_length) {
      tail.parent = arc.head;
      tail.parent_arc = a;
      EnterTree(a, 0);
    }
  }
  SplitTree();
  SettleCorner();
}

// Puts an arc into the tree, an activity at the given vertex of its curve.
void Walk::EnterTree(int index, int level) {
  in_tree_[index] = true;
  if (index >= network_->num_activities) return;
  Arc& arc = arcs_[index];
  const Curve& curve = network_->CurveOf(index);
  arc.level = level;
  arc.lower = level == 0 ? 0 : curve.capacities[level - 1];
  arc.upper = curve.capacities[level];
}

// Takes an arc out of the tree, its flow at one of its bounds.
void Walk::LeaveTree(int index, bool at_upper) {
  in_tree_[index] = false;
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
  const bool head_on_sink_side = sink_side_[arc.head];
  if (sink_side_[arc.tail] == sink_side_[arc.head]) return kNever;
  const std::int64_t apart = nodes_[arc.head].base - nodes_[arc.tail].base;
  if (head_on_sink_side) return apart - arc.forward_length;
  return arc.backward_length == kNever ? kNever : arc.backward_length - apart;
}

// Queues an arc outside the tree for the shift at which it becomes tight.
void Walk::Offer(int index) {
  const std::int64_t shift = CrossingShift(index);
  if (shift == kNever) return;
  heap_.push_back({shift, offers_++, index});
  std::push_heap(heap_.begin(), heap_.end(), LaterEvent());
}

// Hangs the subtree below `top` on `new_parent` by its node `new_top`, and
// moves it to the other side. The arc above `top` has left the tree.
void Walk::MoveSubtree(int top, int new_top, int new_parent, int new_parent_arc,
                       bool to_sink_side) {
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
  // Local pointers: stores through bytes make the compiler read members again.
  const std::int64_t change = to_sink_side ? shift_ : -shift_;
  const std::uint8_t side = to_sink_side ? 1 : 0;
  const int* const first = network_->first_incidence.data();
  const Network::Incidence* const incidences = network_->incidences.data();
  const std::uint8_t* const in_tree = in_tree_.data();
  std::uint8_t* const sink_side = sink_side_.data();
  Node* const nodes = nodes_.data();
  int* const moved = moved_.data();
  Network::Incidence* const border = border_.data();
  int moved_count = 0;
  int border_count = 0;
  moved[moved_count++] = new_top;
  for (int k = 0; k < moved_count; ++k) {
    const int v = moved[k];
    if (k + kPrefetch < moved_count) {
      const int later = moved[k + kPrefetch];
      __builtin_prefetch(&nodes[later]);
      __builtin_prefetch(&incidences[first[later]]);
    }
    nodes[v].base += change;
    sink_side[v] = side;
    const int parent_arc = nodes[v].parent_arc;
    const Network::Incidence* const end = incidences + first[v + 1];
    for (const Network::Incidence* i = incidences + first[v]; i != end; ++i) {
      // Written always and kept where it counts: no branch to mispredict. Arcs
      // to nodes that have not moved yet may turn out not to cross.
      const int tree = in_tree[i->arc];
      moved[moved_count] = i->other;
      moved_count += tree & static_cast<int>(i->arc != parent_arc);
      border[border_count] = *i;
      border_count += (tree ^ 1) & static_cast<int>(sink_side[i->other] != side);
    }
  }
  work_ += moved_count;
  for (int k = 0; k < border_count; ++k) {
    if (sink_side[border[k].other] != side) Offer(border[k].arc);
  }
}

// The first pivot: the arc from sink to source enters. Flow goes along the
// tree from the source to the sink; the last blocking arc leaves.
void Walk::SplitTree() {
  std::int64_t push = kInfinite;
  int leaving_child = -1;
  for (int v = Network::kSource; v != Network::kSink; v = nodes_[v].parent) {
    const std::int64_t room = arcs_[nodes_[v].parent_arc].upper;
    if (room != kInfinite && room <= push) {
      push = room;
      leaving_child = v;
    }
  }
  ++pivots_;
  if (leaving_child < 0) return;  // Nothing on a longest path can be faster.
  for (int v = Network::kSource; v != Network::kSink; v = nodes_[v].parent) {
    arcs_[nodes_[v].parent_arc].flow += push;
  }
  flow_ = push;
  LeaveTree(nodes_[leaving_child].parent_arc, /*at_upper=*/true);
  MoveSubtree(leaving_child, Network::kSource, -1, -1, /*to_sink_side=*/false);
}

void Walk::Pivot(int entering) {
  ++pivots_;
  const bool forward = sink_side_[arcs_[entering].head];
  EnterTree(entering, arcs_[entering].level + (forward ? 1 : 0));
  const Arc& entered = arcs_[entering];
  const int source_end = forward ? entered.tail : entered.head;
  const int sink_end = forward ? entered.head : entered.tail;

  // How far the flow can go, and the last arc on the cycle that blocks it. The
  // cycle starts at the sink: arc to the source, down to source_end, the
  // entering arc, up to the sink.
  std::int64_t push = kInfinite;
  int leaving_child = -1;
  const auto room_of = [](const Arc& arc, bool along) {
    if (!along) return arc.flow - arc.lower;
    return arc.upper == kInfinite ? kInfinite : arc.upper - arc.flow;
  };
  // Walking up from source_end is against the orientation: the first of equal
  // ones met here is the last on the cycle.
  // Without room anywhere the search ends: on the sink side there always is.
  for (int v = source_end; v != Network::kSource && push > 0; v = nodes_[v].parent) {
    const Arc& arc = arcs_[nodes_[v].parent_arc];
    const std::int64_t room = room_of(arc, arc.head == v);
    if (room < push) {
      push = room;
      leaving_child = v;
    }
  }
  bool leaving_on_sink_side = false;
  bool entering_leaves = false;
  if (const std::int64_t room = room_of(entered, forward); room != kInfinite && room <= push) {
    push = room;
    entering_leaves = true;
  }
  for (int v = sink_end; v != Network::kSink && push > 0; v = nodes_[v].parent) {
    const Arc& arc = arcs_[nodes_[v].parent_arc];
    const std::int64_t room = room_of(arc, arc.tail == v);
    if (room != kInfinite && room <= push) {
      push = room;
      leaving_child = v;
      leaving_on_sink_side = true;
      entering_leaves = false;
    }
  }
  if (push == kInfinite) {  // The fastest time.
    LeaveTree(entering, /*at_upper=*/!forward);
    next_shift_ = -1;
    return;
  }
  if (push > 0) {
    for (int v = source_end; v != Network::kSource; v = nodes_[v].parent) {
      Arc& arc = arcs_[nodes_[v].parent_arc];
      arc.flow += arc.head == v ? push : -push;
    }
    arcs_[entering].flow += forward ? push : -push;
    for (int v = sink_end; v != Network::kSink; v = nodes_[v].parent) {
      Arc& arc = arcs_[nodes_[v].parent_arc];
      arc.flow += arc.tail == v ? push : -push;
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
  if (leaving_on_sink_side) {
    MoveSubtree(leaving_child, sink_end, source_end, entering, /*to_sink_side=*/false);
  } else {
    MoveSubtree(leaving_child, source_end, sink_end, entering, /*to_sink_side=*/true);
  }
}

// Pivots until no arc that could take flow is tight at the current shift, and
// finds the shift of the next one.
void Walk::SettleCorner() {
  while (!heap_.empty()) {
    const Event event = heap_.front();
    const bool valid = !in_tree_[event.arc] && CrossingShift(event.arc) == event.shift;
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
  return arcs_.capacity() * sizeof(Arc) + nodes_.capacity() * sizeof(Node) + in_tree_.capacity() +
         sink_side_.capacity() + heap_.capacity() * sizeof(Event) +
         moved_.capacity() * sizeof(int) + border_.capacity() * sizeof(Network::Incidence);
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
    times[v] = nodes_[v].base - (sink_side_[v] ? shift : 0);
  }
  return times;
}

}  // namespace perseus::frontier
