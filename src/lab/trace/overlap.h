// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_OVERLAP_H_
#define PERSEUS_SRC_TRACE_OVERLAP_H_

#include <string>

#include "trace/recording.h"

namespace perseus::trace {

// No computation lasts as long as milliseconds, or less, read as seconds.
// And a rank computes one thing after another; where its computations take much longer together
// than from the first one's start to the last one's end, starts and durations are of different
// units. What to say then, with what to check; else empty.
std::string OverlapNote(const Recording& recording);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_OVERLAP_H_
