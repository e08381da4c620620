// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_CLOCK_SEARCH_H_
#define PERSEUS_ROBUST_CLOCK_SEARCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/clock_moves.h"
#include "robust/draws.h"
#include "robust/lane_replay.h"

namespace perseus::robust {

// What the search may not exceed, and what counts.
struct SearchGoal {
  double accepted_seconds = 0;  // Mean, by the lanes.
  double waiting_watts = 0;     // Of the pipeline: what a second costs anyway.
  double change_joules = 0;
  int most_changes = 0;
  double price_of_time = 0;  // Watts, to begin with, beyond waiting.
  // Joules, to begin with, beyond what a change costs; 0: changes are not scarce.
  double price_of_change = 0;
};

struct Chosen {
  std::vector<int> knobs;
  LaneFigures figures;
  double joules = 0;  // Of the iteration, waiting and changes included.
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

  double price_of_time() const { return price_of_time_; }
  std::int64_t work() const { return work_; }

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
  double price_of_time_ = 0;
  double waiting_watts_ = 0;
  double price_of_change_ = 0;
  double change_joules_ = 0;  // With its price.
  std::int64_t work_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_CLOCK_SEARCH_H_
