// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_COMPARISON_BLOCKS_H_
#define PERSEUS_COMMON_COMPARISON_BLOCKS_H_

#include <cstdint>

#include "common/word_hash.h"

namespace perseus {

// Decides which iterations of a job run at default clocks, to measure what its plan saves. It
// depends only on the number of the iteration, so all ranks and the server agree without any
// messages.
//
// A cycle has `every` iterations. A phase of `iterations` of them runs at default clocks: either
// at the beginning or at the end of the cycle, as a hash of the cycle's number decides. Both are
// equally likely, so the comparison is not biased by a trend (a room that warms up), by periodic
// events (a checkpoint), or by noise that lasts longer than a phase.
struct ComparisonBlocks {
  static constexpr int kLeastPhase = 2;  // In its first iteration, clocks only settle.
  static constexpr int kMostEvery = 1'000'000;

  int every = 0;  // 0: no comparison.
  int iterations = 0;

  bool is_on() const { return every > 0; }
  // Check this for values that a server sent.
  bool is_valid() const {
    return every <= kMostEvery && iterations >= kLeastPhase && every - iterations >= kLeastPhase;
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

  // Whether this is the first iteration of a phase: clocks and temperature still change.
  bool Settles(std::int64_t iteration) const {
    return AtMaximum(iteration) != AtMaximum(iteration - 1);
  }

  friend bool operator==(const ComparisonBlocks&, const ComparisonBlocks&) = default;

 private:
  static bool IsFirst(std::int64_t cycle) {
    return (WordHash(0).With(static_cast<std::uint64_t>(cycle)).value() & 1U) != 0;
  }
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_COMPARISON_BLOCKS_H_
