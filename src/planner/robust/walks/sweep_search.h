// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_SWEEP_SEARCH_H_
#define PERSEUS_ROBUST_WALKS_SWEEP_SEARCH_H_

#include <cstdint>
#include <span>

#include "perseus/costed_pipeline.h"
#include "robust/replay/draws.h"
#include "robust/replay/window_replay.h"
#include "robust/walks/clock_moves.h"
#include "robust/walks/clock_search.h"
#include "robust/walks/price_control.h"
#include "robust/walks/search_goal.h"

namespace perseus::robust {

// Simulated annealing like ClockSearch, where a WindowReplay suits: it sweeps to and fro
// through the iteration, so that one move is near the next.
class SweepSearch {
 public:
  // All must outlive it.
  SweepSearch(const CostedPipeline& pipeline, WindowReplay* replay, std::uint64_t seed);

  // As ClockSearch::Anneal().
  Chosen Anneal(const SearchGoal& goal, const ClockSearch::Schedule& schedule);

 private:
  std::span<const KnobChange> Propose();

  const CostedPipeline& pipeline_;
  WindowReplay* replay_;
  Stream stream_;
  ClockMoves moves_;
  double centre_ = 0;  // Place that the sweep has come to,
  double speed_ = 0;   // and by which it goes on with each move.
  PriceControl prices_;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_SWEEP_SEARCH_H_
