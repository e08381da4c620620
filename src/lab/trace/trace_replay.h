// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_REPLAY_H_
#define PERSEUS_SRC_TRACE_TRACE_REPLAY_H_

#include <span>
#include <vector>

#include "trace/links.h"
#include "trace/recording.h"

namespace perseus::trace {

// How long each operation itself took: its duration or, in a group, the time from the last begin of
// the group to its own end. Clocks of ranks differ, so values below -10 ms are replaced by 0.
std::vector<double> OwnSeconds(const Recording& recording, const Links& links);

// The same without stragglers: for each kind of operation the mean over the job, or the median for
// communication.
std::vector<double> UsualSeconds(const Recording& recording, std::span<const double> own_seconds);

struct TraceTiming {
  std::vector<double> start_seconds;  // [operation], from its step's start.
  std::vector<double> end_seconds;
  std::vector<double> step_seconds;  // [step index]
};

// Replays a trace: each operation begins when all that it waits for have ended. It ends its own
// time after the last operation of its group has begun. Fills `timing` and reuses its memory.
void ReplayTrace(const Recording& recording, const Links& links,
                 std::span<const double> own_seconds, TraceTiming* timing);

// From the first begin to the last end of each step, as recorded.
std::vector<double> RecordedSeconds(const Recording& recording);

double MeanOf(std::span<const double> values);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_REPLAY_H_
