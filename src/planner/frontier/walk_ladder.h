// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_WALK_LADDER_H_
#define PERSEUS_FRONTIER_WALK_LADDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "frontier/walk.h"

namespace perseus::frontier {

struct LadderOptions {
  // All snapshots together stay below this, but for the first. With half as
  // many, the way from one to the next is twice as long.
  std::size_t most_bytes = std::size_t{64} << 20;
};

// Walk once, plan often: snapshots ("rungs") of one walk, evenly spaced by
// work, from which a walk or a program at any deadline starts without walking
// again from the slowest time. What it gives depends on the network and the
// deadline only, not on where the rungs are: it is the basis, tie for tie, that
// a fresh walk has there.
//
// Borrows the network. Immutable once the walk has ended: const members may be
// called from several threads at once.
class WalkLadder {
 public:
  // Walks the network to its end.
  explicit WalkLadder(const Network& network, const LadderOptions& options = {});
  // For a walk of the network that somebody else makes: `walk` is at its beginning, and Offer() is
  // called after every step to its end.
  WalkLadder(const Network& network, const Walk& walk, const LadderOptions& options = {});
  void Offer(const Walk& walk);

  std::int64_t slowest_time() const { return rungs_.front().time(); }
  std::int64_t fastest_time() const { return fastest_time_; }

  // A walk on the piece that holds `deadline`, which is clamped to
  // [fastest_time(), slowest_time()].
  Walk WalkTo(std::int64_t deadline) const;

  // The optimum for a deadline, which may lie above slowest_time(). Below
  // fastest_time(): that of fastest_time().
  DeadlineProgram ProgramAt(std::int64_t deadline) const;

  // Memory held by the rungs.
  std::size_t bytes() const;

 private:
  const Network* network_;
  std::int64_t fastest_time_;
  std::size_t most_bytes_;
  std::int64_t spacing_;     // Of rungs, in work.
  std::vector<Walk> rungs_;  // Slowest first; never empty.
};

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_WALK_LADDER_H_
