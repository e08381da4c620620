// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_GREEDY_RUNS_H_
#define PERSEUS_ROBUST_WALKS_GREEDY_RUNS_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/replay/lane_replay.h"

namespace perseus::robust {

struct RunLimits {
  double baseline_seconds = 0;  // At maximum clocks, mean, by the lanes.
  double accepted_seconds = 0;  // The same.
  double waiting_watts = 0;     // Of the pipeline.
  double change_joules = 0;
  int most_changes = 0;
  int most_tries = 0;  // Replays of a part of the pipeline.

  // What an iteration costs, with its waiting and the price of its changes.
  double Joules(const LaneFigures& figures) const {
    return figures.effective_joules + waiting_watts * figures.seconds +
           change_joules * figures.changes;
  }
  bool Allow(const LaneFigures& figures) const {
    return figures.seconds <= accepted_seconds && figures.changes <= most_changes;
  }
};

// Adds runs of one clock on one rank to knobs that are in time, one after the other, each time
// the one that saves most in the lanes: from near a rank's beginning, or where its phases meet,
// to near its end; at the slowest clock that is in time, which is found by halving. With few
// changes walks do not find these: a short run saves nothing yet. First only a part of the accepted
// time may be used, so that one run does not take all of it from the next. Deterministic; leaves
// the replay at any knobs.
std::vector<int> WithGreedyRuns(const CostedPipeline& pipeline, const std::vector<int>& knobs,
                                const RunLimits& limits, LaneReplay* replay);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_GREEDY_RUNS_H_
