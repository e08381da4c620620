// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_REPLAY_H_
#define PERSEUS_SRC_TRACE_TRACE_REPLAY_H_

#include <span>
#include <vector>

#include "trace/links.h"
#include "trace/recording.h"

namespace perseus::trace {

// How long each operation itself took: its duration, or for one of a group the time
// from the group's last begin to its own end. Clocks of ranks are not quite the
// same: what comes out below -10 ms is taken for 0.
std::vector<double> OwnSeconds(const Recording& recording, const Links& links);

// The same without stragglers: of every kind of operation its mean over the job,
// or its median where it communicates.
std::vector<double> UsualSeconds(const Recording& recording, std::span<const double> own_seconds);

struct TraceTiming {
  std::vector<double> start_seconds;  // [operation], from its step's start.
  std::vector<double> end_seconds;
  std::vector<double> step_seconds;  // [step index]
};

// Every operation begins as soon as all that it waits for have ended, and ends its
// own time after the last of its group has begun. `timing` is filled in; its
// memory is used again.
void ReplayTrace(const Recording& recording, const Links& links,
                 std::span<const double> own_seconds, TraceTiming* timing);

// From the first begin to the last end of each step, as recorded.
std::vector<double> RecordedSeconds(const Recording& recording);

double MeanOf(std::span<const double> values);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_REPLAY_H_
