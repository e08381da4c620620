// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_COMPARISON_BLOCKS_H_
#define PERSEUS_COMMON_COMPARISON_BLOCKS_H_

#include <cstdint>

namespace perseus {

// Which iterations of a job run at maximum clocks, to learn what its plan saves.
// A pure function of the iteration's number, so that all ranks, and the server
// that reads their reports, agree without a word. A value.
//
// Iterations are taken in cycles of `every`, of which `iterations` in one
// stretch run at maximum clocks: at the cycle's begin or at its end, as a hash of
// its number decides. Because either is as likely, neither a trend (a room that
// warms up) nor something that comes every so many iterations (a checkpoint)
// nor noise that lasts from one stretch to the next favours one side.
struct ComparisonBlocks {
  static constexpr int kLeastStretch = 2;  // Its first iteration only settles.
  static constexpr int kMostEvery = 1'000'000;

  int every = 0;  // 0: no comparison.
  int iterations = 0;

  bool is_on() const { return every > 0; }
  // A server may send anything.
  bool is_valid() const {
    return every <= kMostEvery && iterations >= kLeastStretch &&
           every - iterations >= kLeastStretch;
  }

  std::int64_t CycleOf(std::int64_t iteration) const {
    const std::int64_t cycle = iteration / every;
    return iteration % every < 0 ? cycle - 1 : cycle;
  }

  bool AtMaximum(std::int64_t iteration) const {
    if (!is_on()) return false;
    const std::int64_t cycle = CycleOf(iteration);
    const std::int64_t place = iteration - cycle * every;
    return IsFirst(cycle) ? place < iterations : place >= every - iterations;
  }

  // The first iteration after a switch: clocks and heat still change.
  bool Settles(std::int64_t iteration) const {
    return AtMaximum(iteration) != AtMaximum(iteration - 1);
  }

  friend bool operator==(const ComparisonBlocks&, const ComparisonBlocks&) = default;

 private:
  // A bit of SplitMix64.
  static bool IsFirst(std::int64_t cycle) {
    std::uint64_t bits = static_cast<std::uint64_t>(cycle) + 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return ((bits ^ (bits >> 31U)) & 1U) != 0;
  }
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_COMPARISON_BLOCKS_H_
