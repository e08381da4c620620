// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_CLOCK_SEARCH_H_
#define PERSEUS_ROBUST_WALKS_CLOCK_SEARCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/replay/draws.h"
#include "robust/replay/lane_replay.h"
#include "robust/walks/clock_moves.h"
#include "robust/walks/price_control.h"
#include "robust/walks/search_goal.h"

namespace perseus::robust {

struct Chosen {
  std::vector<int> knobs;
  LaneFigures figures;
  double joules = 0;  // SearchGoal::Joules().

  // Becomes what a replay holds, if the goal allows that and it is better.
  template <typename Replay>
  void Offer(const SearchGoal& goal, const Replay& replay) {
    if (!goal.Allows(replay.figures())) return;
    const double other = goal.Joules(replay.figures());
    if (knobs.empty() || other < joules) *this = {replay.knobs(), replay.figures(), other};
  }
};

// Simulated annealing over runs of clocks: along a rank, where a run begins,
// ends and at which clock. Time is held by a price that is adapted on the way.
class ClockSearch {
 public:
  // All must outlive it.
  ClockSearch(const CostedPipeline& pipeline, LaneReplay* replay, std::uint64_t seed);

  struct Schedule {
    std::int64_t work = 0;   // Computations x lanes replayed, and a little for each move.
    double hot_joules = 0;   // A move that costs so much is taken once in e times, first...
    double cold_joules = 0;  // ... and last.
  };
  // Walks from the replay's present knobs. Returns the best choice within the goal
  // that it met; without knobs where there was none. Leaves the replay at the last.
  Chosen Anneal(const SearchGoal& goal, const Schedule& schedule);

 private:
  void Propose();
  double FirstOrder();  // Leaves the proposal in `scratch_`.
  void TakeBack();

  const CostedPipeline& pipeline_;
  LaneReplay* replay_;
  Stream stream_;
  ClockMoves moves_;
  std::span<const KnobChange> proposal_;  // Held by the moves.
  std::vector<int> before_proposal_;      // The knobs that it replaces.
  std::vector<double> criticality_;
  std::vector<int> scratch_;  // The replay's knobs; with the proposal while it is judged.
  std::vector<int> affected_;
  int proposed_changes_ = 0;  // What the proposal adds.
  PriceControl prices_;
  double waiting_watts_ = 0;
  double change_joules_ = 0;  // With its price.
  std::int64_t work_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_CLOCK_SEARCH_H_
