// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_WHAT_IF_H_
#define PERSEUS_SRC_TRACE_WHAT_IF_H_

#include <string>
#include <vector>

#include "trace/links.h"
#include "trace/recording.h"

namespace perseus::trace {

struct StepTimes {
  int step = 0;
  double recorded_seconds = 0;
  double replayed_seconds = 0;            // Without launch delays.
  double without_stragglers_seconds = 0;  // With usual times besides.
};

struct NamedSlowdown {
  std::string name;
  double slowdown = 1;
};

// Where recorded steps waited for nothing that was recorded: on the chain of
// operations that made each step as long as it was.
struct LaunchDelay {
  std::string operation;
  int stage = 0;
  double seconds = 0;  // Mean of a step.
};

// What stragglers cost. A slowdown is the mean time of a step over the mean time
// without stragglers; `by_...`: where only these operations keep their own times.
// By stage, pipeline or place: empty where there are too many to replay each.
struct WhatIf {
  std::vector<StepTimes> steps;
  double recorded_seconds = 0;  // Means.
  double replayed_seconds = 0;
  double without_stragglers_seconds = 0;
  double launch_slowdown = 1;    // recorded / replayed
  double blocking_slowdown = 1;  // replayed / without stragglers
  std::vector<double> by_stage;
  std::vector<double> by_pipeline;
  std::vector<double> by_place;             // [Recording::Place]: a rank.
  std::vector<NamedSlowdown> by_operation;  // The greatest first.
  std::vector<LaunchDelay> launch_delays;   // The longest first.
  // The rest of recorded - replayed: once these are gone, another chain is the longest.
  double other_chain_seconds = 0;
};

// Stages, pipelines or places times the operations of the trace: some ten seconds.
inline constexpr double kMostReplayedOperations = 4e8;

WhatIf AskWhatIf(const Recording& recording, const Links& links,
                 double most_replayed = kMostReplayedOperations);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_WHAT_IF_H_
