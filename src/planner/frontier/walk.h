// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_WALK_H_
#define PERSEUS_FRONTIER_WALK_H_

#include <array>
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
  std::int64_t ArcFlow(int arc) const { return flows_[arc].flow; }
  long long pivots() const { return pivots_; }
  // Work done so far: about the nodes touched.
  std::int64_t work() const { return work_; }
  // Memory held, in bytes.
  std::size_t bytes() const;

 private:
  friend class DeadlineProgram;  // Takes over the basis.

  // Data of an arc for the search for the next pivot: half a cache line.
  struct alignas(32) Arc {
    // While not in the tree: the lengths at which the arc would take or give
    // back flow (kNever: it cannot).
    std::int64_t forward_length;
    std::int64_t backward_length;
    int tail;
    int head;
    int level;  // Of an activity's curve; -1: no flow yet.
    bool in_tree;
  };
  struct Flow {
    std::int64_t flow;
    // While in the tree: flow may move between these.
    std::int64_t lower;
    std::int64_t upper;
  };
  struct alignas(32) Node {
    std::int64_t base;  // See Base().
    int parent;
    int parent_arc;
    int first_child;  // -1: none. Siblings are linked both ways.
    int next;
    int previous;
  };
  // The subtree below `top` goes to the other side, where it hangs on
  // `new_parent` by its node `new_top`.
  struct Move {
    int top;
    int new_top;
    int new_parent;
    int new_parent_arc;
    bool to_sink_side;
    bool most_of_side;  // A guess.
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
  void DropOutdatedEvents();
  bool OnSinkSide(int node) const { return on_sink_side_[label_[node]] != 0; }
  // Event time; on the sink side, plus the shift.
  std::int64_t Base(int node) const { return nodes_[node].base - offset_[label_[node]]; }
  void Hang(int node, int parent, int parent_arc);
  void Unhang(int node);
  bool Collect(std::vector<int>* list, int* seen, int* count, int steps) const;
  void MoveSubtree(const Move& move);
  void RelabelSubtree(int count, bool to_sink_side);
  void RelabelRest(int count, bool to_sink_side);
  void OfferAcross(const std::vector<int>& list, int count, std::uint8_t mark,
                   const std::uint8_t* marks);
  void MergeLabels();
  void Pivot(int entering);
  void SplitTree();
  void SettleCorner();

  static constexpr std::int64_t kNever = -1;
  static constexpr int kMostLabels = 256;  // As many as a byte can name.

  const Network* network_;
  std::vector<Arc> arcs_;
  std::vector<Flow> flows_;  // [arc]
  std::vector<Node> nodes_;
  // Nodes with one label are on one side, and change it all at once. What the
  // search for crossing arcs reads is kept small.
  std::vector<std::uint8_t> label_;                 // [node]
  int labels_ = 2;                                  // In use.
  std::array<std::int64_t, kMostLabels> offset_{};  // [label]
  std::array<std::uint8_t, kMostLabels> on_sink_side_{};
  std::vector<Event> heap_;
  std::uint32_t offers_ = 0;
  std::size_t most_events_ = 1024;  // Before outdated ones are dropped.
  std::vector<int> subtree_;        // Room for all nodes, and one more.
  std::vector<int> rest_;
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
