// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_TRACE_MADE_UP_TRACE_H_
#define PERSEUS_TESTS_TRACE_MADE_UP_TRACE_H_

#include <functional>
#include <string>

namespace perseus::trace {

inline constexpr const char* kHeader =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

// A job of two stages in 1F1B: how long each computation takes, in seconds.
struct MadeUpJob {
  int pipelines = 2;
  int microbatches = 3;
  int steps = 2;
  int gpus_per_rank = 4;
  double transfer_seconds = 0.01;
  double launch_seconds = 0;  // Before the first forward of stage 0.
  // (step, pipeline, stage, microbatch, is forward) -> seconds.
  std::function<double(int, int, int, int, bool)> seconds = [](int, int, int, int, bool forward) {
    return forward ? 1.0 : 2.0;
  };
};

// Its trace as text. After the computations comes an optimizer of half a second, which
// begins together in all pipelines.
std::string MadeUpTrace(const MadeUpJob& job);

// Forward and backward of `stages` stages at three clocks.
std::string MadeUpProfile(int stages);

}  // namespace perseus::trace

#endif  // PERSEUS_TESTS_TRACE_MADE_UP_TRACE_H_
