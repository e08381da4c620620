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

// A gap in the longest chain of operations of the recorded steps: the next operation could have
// started, but did not, and the trace does not say why.
struct LaunchDelay {
  std::string operation;
  int stage = 0;
  double seconds = 0;  // Mean over the steps.
};

// What stragglers cost. A slowdown is the mean time of a step divided by the mean time without
// stragglers. For the `by_...` members, only the named operations keep their recorded times; all
// others take their times without stragglers. by_stage, by_pipeline and by_place are empty where
// there are too many to replay each.
struct WhatIf {
  std::vector<StepTimes> steps;
  double recorded_seconds = 0;  // This and the next two: means over the steps.
  double replayed_seconds = 0;
  double without_stragglers_seconds = 0;
  double launch_slowdown = 1;    // recorded / replayed
  double blocking_slowdown = 1;  // replayed / without stragglers
  std::vector<double> by_stage;
  std::vector<double> by_pipeline;
  std::vector<double> by_place;             // [Recording::Place]: a rank.
  std::vector<NamedSlowdown> by_operation;  // The greatest first.
  std::vector<LaunchDelay> launch_delays;   // The longest first.
  // recorded_seconds - replayed_seconds - the sum of launch_delays. Not 0 where the replay begins
  // transfers earlier than the recorded step did, or where another chain becomes the longest.
  double other_chain_seconds = 0;
};

// Limit of (stages, pipelines or places) x (operations of the trace): about ten seconds of work.
inline constexpr double kMostReplayedOperations = 4e8;

WhatIf AskWhatIf(const Recording& recording, const Links& links,
                 double most_replayed = kMostReplayedOperations);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_WHAT_IF_H_
