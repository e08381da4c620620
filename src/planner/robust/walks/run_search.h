// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_RUN_SEARCH_H_
#define PERSEUS_ROBUST_WALKS_RUN_SEARCH_H_

#include <cstdint>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/kept_constraints.h"
#include "robust/replay/draws.h"
#include "robust/replay/lane_replay.h"

namespace perseus::robust {

struct RunGoal {
  double accepted_seconds = 0;  // Mean, by the lanes.
  double least_seconds = 0;     // An iteration that is shorter waits until then.
  double waiting_watts = 0;     // Of the pipeline.
  double price_of_time = 0;     // Watts, beyond waiting, of what is too late.
  double change_joules = 0;
  std::int64_t most_changes = 0;
};

// Simulated annealing among choices that keep constraints: the clocks of groups that
// share one, or else stretches of a rank, with their borders.
class RunSearch {
 public:
  // All must outlive it.
  RunSearch(const CostedPipeline& pipeline, const plan::KeptConstraints& kept, LaneReplay* replay,
            std::uint64_t seed);

  // Walks from the replay's present knobs, which keep the constraints. `work`: computations
  // x lanes that may be replayed. Returns the best choice in time that it met; empty where
  // there was none. Leaves the replay at the last.
  std::vector<int> Anneal(const RunGoal& goal, std::int64_t work, double hot_joules,
                          double cold_joules);

 private:
  struct Stretch {
    int rank = 0;
    int begin = 0;  // In the rank's order.
    int end = 0;    // One beyond.
  };

  void Propose();
  void ProposeGroup(int direction);
  void ProposeStretch();
  void Set(const std::vector<int>& members, int knob);
  Stretch RunAround(int rank, int at) const;
  int StepFrom(int table, int knob, int direction);

  const CostedPipeline& pipeline_;
  const plan::KeptConstraints& kept_;
  LaneReplay* replay_;
  Stream stream_;
  std::vector<std::vector<int>> useful_;  // [table]: knobs, ascending.
  std::vector<char> has_option_;          // [table x knobs + knob]
  std::vector<int> knobs_;                // Those of the replay, with the proposal.
  std::vector<KnobChange> proposal_;
  std::vector<KnobChange> undo_;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_RUN_SEARCH_H_
