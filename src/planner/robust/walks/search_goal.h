// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_SEARCH_GOAL_H_
#define PERSEUS_ROBUST_WALKS_SEARCH_GOAL_H_

#include "robust/replay/lane_replay.h"

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

  // Of the iteration, waiting and changes included.
  double Joules(const LaneFigures& figures) const {
    return figures.effective_joules + waiting_watts * figures.seconds +
           change_joules * figures.changes;
  }
  bool Allows(const LaneFigures& figures) const {
    return figures.seconds <= accepted_seconds && figures.changes <= most_changes;
  }
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_SEARCH_GOAL_H_
