// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_WALK_H_
#define PERSEUS_FRONTIER_WALK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/network.h"

namespace perseus::frontier {

// Walks the frontier of a network from its slowest time to its fastest. See
// walk.cc for the algorithm. Borrows the network. Copyable: a copy is a
// snapshot, which goes on exactly as the original would. Not thread-safe.
class Walk {
 public:
  explicit Walk(const Network& network);

  // The piece of the frontier to the left of the current corner: time falls
  // from time() to next_time(), cost rises by slope() per tick.
  std::int64_t time() const { return slowest_time_ - shift_; }
  std::int64_t next_time() const { return slowest_time_ - next_shift_; }
  std::int64_t slope() const { return flow_; }
  // Rounded-grid cost above that of the slowest time.
  Int128 cost() const { return cost_; }
  // True when no schedule is faster than time().
  bool at_fastest() const { return next_shift_ < 0; }

  // Goes to the next corner. Precondition: !at_fastest().
  void Advance();

  // Event times of every node for a deadline in [next_time(), time()].
  std::vector<std::int64_t> EventTimes(std::int64_t deadline) const;
  // Price of every arc's time, on the current piece.
  std::int64_t ArcFlow(int arc) const { return arcs_[arc].flow; }
  long long pivots() const { return pivots_; }
  // Work done so far: about the nodes touched.
  std::int64_t work() const { return work_; }
  // Memory held, in bytes.
  std::size_t bytes() const;

 private:
  friend class DeadlineProgram;  // Takes over the basis.

  struct Arc {
    int tail;
    int head;
    std::int64_t flow;
    // While in the tree: flow may move between these.
    std::int64_t lower;
    std::int64_t upper;
    // While not in the tree: the lengths at which the arc would take or give
    // back flow (kNever: it cannot).
    std::int64_t forward_length;
    std::int64_t backward_length;
    int level;  // Of an activity's curve; -1: no flow yet.
  };
  struct Node {
    std::int64_t base;  // Event time; on the sink side, plus the shift.
    int parent;
    int parent_arc;
  };
  struct Event {
    std::int64_t shift;
    std::uint32_t sequence;  // Of offers.
    int arc;
  };

  void EnterTree(int index, int level);
  void LeaveTree(int index, bool at_upper);
  std::int64_t CrossingShift(int index) const;
  void Offer(int index);
  void MoveSubtree(int top, int new_top, int new_parent, int new_parent_arc, bool to_sink_side);
  void Pivot(int entering);
  void SplitTree();
  void SettleCorner();

  static constexpr std::int64_t kNever = -1;

  const Network* network_;
  std::vector<Arc> arcs_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> in_tree_;    // [arc]
  std::vector<std::uint8_t> sink_side_;  // [node]
  std::vector<Event> heap_;
  std::uint32_t offers_ = 0;
  std::vector<int> moved_;                  // Room for a subtree, and one more;
  std::vector<Network::Incidence> border_;  // for the arcs around it, and one more.
  std::int64_t slowest_time_ = 0;
  std::int64_t shift_ = 0;
  std::int64_t next_shift_ = -1;
  std::int64_t flow_ = 0;
  Int128 cost_ = 0;
  long long pivots_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_WALK_H_
