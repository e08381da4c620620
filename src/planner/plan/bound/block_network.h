// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_
#define PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_

#include <cstdint>
#include <span>

#include "frontier/deadline_program.h"
#include "frontier/solver.h"
#include "plan/search/window_network.h"

namespace perseus::plan {

// Some activities of a network, in which the
// arcs to all others are replaced by their prices: an activity that waits for
// others is paid for starting late, one that others wait for pays for ending
// late, within the times that any plan can have. Unlike a window, a block need
// not be consecutive.
class BlockNetwork : public PartNetwork {
 public:
  // Prices are those of `relaxation`, the optimum at `deadline`. Borrows all.
  BlockNetwork(const frontier::Network& whole, const frontier::DeadlineProgram& relaxation,
               std::int64_t deadline);

  // `activities` in topological order. Those of the network behind them are borders.
  void Cut(std::span<const int> activities);

 private:
  struct Border {
    int activity;        // Local.
    std::int64_t price;  // Of all arcs that are cut, together.
    std::int64_t flow;   // And of those from the source or to the sink.
    std::int64_t least;  // Ticks: of the border's length,
    std::int64_t most;   // which costs less the longer it is.
    bool at_start;
  };

  Timetable limits_;  // Everything at its fastest.
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_BOUND_BLOCK_NETWORK_H_
