// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/walk_ladder.h"

#include <algorithm>
#include <utility>

namespace perseus::frontier {
namespace {

// More rungs than this are not worth their copies.
constexpr std::size_t kMostRungs = 64;
// The first spacing, in units of work for each node: a copy costs a quarter of this.
constexpr std::int64_t kFirstSpacingPerNode = 16;

}  // namespace

WalkLadder::WalkLadder(const Network& network, const Walk& walk, const LadderOptions& options)
    : network_(&network),
      fastest_time_(network.LongestToSink(/*slowest=*/false)[Network::kSource]),
      most_bytes_(options.most_bytes),
      spacing_(kFirstSpacingPerNode * network.num_nodes()),
      rungs_{walk} {}

WalkLadder::WalkLadder(const Network& network, const LadderOptions& options)
    : WalkLadder(network, Walk(network), options) {
  Walk walk = rungs_.front();
  while (!walk.at_fastest()) {
    walk.Advance();
    Offer(walk);
  }
}

void WalkLadder::Offer(const Walk& walk) {
  if (walk.work() - rungs_.back().work() < spacing_) return;
  rungs_.push_back(walk);
  // How much work the whole walk is shows only at its end: whenever there
  // are too many rungs every other one goes.
  while (rungs_.size() > 1 && (rungs_.size() > kMostRungs || bytes() > most_bytes_)) {
    const std::size_t kept = (rungs_.size() + 1) / 2;
    for (std::size_t k = 1; k < kept; ++k) rungs_[k] = std::move(rungs_[2 * k]);
    rungs_.erase(rungs_.begin() + static_cast<std::ptrdiff_t>(kept), rungs_.end());
    spacing_ *= 2;
  }
}

Walk WalkLadder::WalkTo(std::int64_t deadline) const {
  // The last rung above the deadline: at a corner, a fresh walk stays on the
  // piece to its right.
  const auto rung = std::partition_point(rungs_.begin() + 1, rungs_.end(),
                                         [&](const Walk& r) { return r.time() > deadline; });
  Walk walk = *(rung - 1);
  while (!walk.at_fastest() && walk.next_time() > deadline) walk.Advance();
  return walk;
}

DeadlineProgram WalkLadder::ProgramAt(std::int64_t deadline) const {
  const Walk walk = WalkTo(deadline);
  const std::int64_t reached = walk.at_fastest() ? walk.time() : std::min(walk.time(), deadline);
  DeadlineProgram program(*network_, walk, reached);
  if (deadline > reached) {
    program.SetDeadline(deadline);
    program.Optimise(kNoLimit);
  }
  return program;
}

std::size_t WalkLadder::bytes() const {
  std::size_t bytes = 0;
  for (const Walk& rung : rungs_) bytes += rung.bytes();
  return bytes;
}

}  // namespace perseus::frontier
