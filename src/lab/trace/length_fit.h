// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_LENGTH_FIT_H_
#define PERSEUS_SRC_TRACE_LENGTH_FIT_H_

#include <span>
#include <vector>

#include "trace/recording.h"

namespace perseus::trace {

// What a planner would expect that knows one length for each microbatch and how
// long computations take for it.
struct LengthFit {
  std::vector<double> seconds;  // [operation]; own times of what is no computation.
  // Root mean square of what computations differ by, over their mean.
  double error = 0;
};

// A microbatch's length is the mean of its computations, each over the mean of its
// block and type; and time = a + b x length is fitted for each block and type.
LengthFit FitLengths(const Recording& recording, std::span<const double> own_seconds);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_LENGTH_FIT_H_
