// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_LENGTH_FIT_H_
#define PERSEUS_SRC_TRACE_LENGTH_FIT_H_

#include <span>
#include <vector>

#include "trace/recording.h"

namespace perseus::trace {

// The times that a planner would predict if it knew one sequence length for each microbatch, and
// how the times of computations depend on it.
struct LengthFit {
  std::vector<double> seconds;  // [operation]; for other operations than computations: own times.
  // Root mean square error of the predicted times, divided by the mean time of computations.
  double error = 0;
};

// The length of a microbatch is the mean over its computations of time / (mean time of the same
// block and type). Then time = a + b x length is fitted for each block and type.
LengthFit FitLengths(const Recording& recording, std::span<const double> own_seconds);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_LENGTH_FIT_H_
