// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_DEADLINE_PROGRAM_H_
#define PERSEUS_FRONTIER_DEADLINE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontier/network.h"
#include "frontier/walk.h"

namespace perseus::frontier {

// Above every objective.
inline constexpr Int128 kNoLimit = static_cast<Int128>(1) << 126;

// The least cost of a network for one deadline, kept optimal while activities
// are fixed to single options and released again: what a search for a discrete
// plan asks thousands of times. See deadline_program.cc for the algorithm.
// Borrows the network. Copyable (a copy is a snapshot). Not thread-safe.
class DeadlineProgram {
 public:
  // Takes over an optimal basis. `deadline` lies in
  // [walk.next_time(), walk.time()], or is walk.time() at the fastest.
  DeadlineProgram(const Network& network, const Walk& walk, std::int64_t deadline);

  // Former state of an arc: a flow, which is balanced at every node, and whether the arc was in the
  // basis that the flow is from.
  struct ArcStart {
    std::int64_t flow = 0;
    bool in_tree = false;
  };
  // The optimum, from a flow of [arc of the network] that is not far from it: see
  // deadline_start.cc. Nullopt: nothing is as fast as that.
  static std::optional<DeadlineProgram> FromFlow(const Network& network,
                                                 std::span<const ArcStart> starts,
                                                 std::int64_t deadline);

  // Changes the deadline. Call Optimise() afterwards.
  void SetDeadline(std::int64_t deadline);

  // An activity at its own curve, or at one option.
  bool IsFixed(int activity) const { return fixed_length_[activity] >= 0; }
  std::int64_t Duration(int activity) const;
  // Price of the activity's time at the optimum.
  std::int64_t Price(int activity) const { return arcs_[activity].flow; }
  // The slowest vertex of the curve that the activity still has time for, or
  // where its price puts it: Duration() lies at it or between it and the next.
  int Level(int activity) const;
  std::int64_t PriceOfTime() const { return arcs_.back().flow; }  // -d(objective)/d(deadline)
  ArcStart StartOf(int arc) const { return {arcs_[arc].flow, in_tree_[arc] != 0}; }
  std::int64_t StartTime(int activity) const { return nodes_[Network::StartNode(activity)].time; }

  // Least cost, in grid units above the cost of the slowest vertices, of what
  // is free, plus `cost` of what is fixed. Valid after Optimise().
  Int128 objective() const { return objective_; }

  // Gives an activity one option only. `cost` is in grid units above its
  // curve's slowest cost. Call Optimise() afterwards.
  void Fix(int activity, std::int64_t length, Int128 cost);
  // Gives the activity its curve again.
  void Release(int activity);

  enum class Outcome : std::uint8_t { kOptimal, kAboveLimit, kInfeasible };
  // Restores optimality. Stops early when the objective, which only rises on
  // the way, passes `limit`; the program is then not optimal, but consistent:
  // further changes and another Optimise() are allowed. The same holds after
  // kInfeasible.
  Outcome Optimise(Int128 limit);

  // Work done so far: nodes and arcs touched.
  std::int64_t work() const { return work_; }

 private:
  struct Arc {
    int tail;
    int head;
    std::int64_t flow;
    std::int64_t lower;  // In the tree: bounds of the flow at this level.
    std::int64_t upper;
    std::int64_t forward_length;  // Out of the tree: see Walk.
    std::int64_t backward_length;
    int level;
  };
  struct Node {
    std::int64_t time;
    int parent;
    int parent_arc;
    int depth;
  };

  static constexpr std::int64_t kNever = -1;

  DeadlineProgram(const Network& network, std::span<const ArcStart> starts, std::int64_t deadline);

  static int LevelOfFlow(const Curve& curve, std::int64_t flow);
  Int128 LagrangianCost(int activity) const;
  void SetTreeBounds(int index);
  void SetOutsideLengths(int index);
  std::int64_t TreeLength(int index) const;
  void EnterTree(int index, bool forward);
  void LeaveTree(int index, bool at_upper);
  void ChangeOption(int activity);
  std::int64_t Violation(int index, bool* forward) const;
  void ShiftSubtree(int top, std::int64_t change);
  void Reroot(int top, int new_top, int new_parent, int new_parent_arc, std::int64_t change);
  void MoveSubtree(int top, std::int64_t change);
  // Nodes that were moved last.
  std::span<const int> Subtree() const { return {subtree_room_.data(), subtree_size_}; }
  void OfferAround(std::int64_t change);
  bool IsBetweenBounds(int index) const;
  void SetLevel(int activity, bool in_tree, bool child_is_tail);
  std::vector<int> GrowTree(std::span<const ArcStart> starts);
  bool Pivot(int entering, bool forward, std::int64_t violation);

  const Network* network_;
  std::vector<Arc> arcs_;  // The network's, and the one from sink to source.
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> in_tree_;
  std::vector<std::uint8_t> is_candidate_;
  std::vector<std::int64_t> fixed_length_;
  std::vector<Int128> fixed_cost_;
  std::vector<int> candidates_;
  std::vector<int> subtree_room_;  // For all nodes, and one more.
  std::size_t subtree_size_ = 0;
  std::vector<std::uint8_t> mark_of_;  // [node] subtree_mark_ in what was moved last, else less.
  std::uint8_t subtree_mark_ = 0;
  Int128 objective_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_DEADLINE_PROGRAM_H_
