// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_
#define PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/solver.h"
#include "plan/search/window_network.h"

namespace perseus::plan {

// Some activities of a network as a small network of their own, in which the
// arcs to all others are replaced by their prices: an activity that waits for
// others is paid for starting late, one that others wait for pays for ending
// late, within the times that any plan can have. Unlike a window, a block need
// not be consecutive.
class BlockNetwork {
 public:
  // Prices are those of `relaxation`, the optimum at `deadline`. Borrows all.
  BlockNetwork(const frontier::Network& whole, const frontier::DeadlineProgram& relaxation,
               std::int64_t deadline);

  // `activities` in topological order.
  void Cut(std::span<const int> activities);

  // The block's own; activity k is activities[k], those behind are borders.
  const frontier::Network& network() const { return network_; }
  // The optimum with everything free. Adds what it costs to `work`.
  std::optional<frontier::DeadlineProgram> Program(std::int64_t* work) const;

 private:
  struct Border {
    int activity;        // Local.
    std::int64_t price;  // Of all arcs that are cut, together.
    std::int64_t flow;   // And of those from the source or to the sink.
    std::int64_t least;  // Ticks: of the border's length,
    std::int64_t most;   // which costs less the longer it is.
    bool at_start;
  };

  const frontier::Network& whole_;
  const frontier::DeadlineProgram& relaxation_;
  Timetable limits_;  // Everything at its fastest.
  frontier::Network network_;
  std::vector<frontier::DeadlineProgram::ArcStart> starts_;  // [arc of the block]
  std::int64_t time_ = 0;
  std::vector<int> local_;  // [activity of the whole], -1 outside.
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_
