// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_OVERLAP_H_
#define PERSEUS_SRC_TRACE_OVERLAP_H_

#include <string>

#include "trace/recording.h"

namespace perseus::trace {

// A rank runs one computation at a time. If its computations together take much longer than the
// time from the first start to the last end, starts and durations probably have different units.
// Returns a sentence about that; empty: all is well.
std::string OverlapNote(const Recording& recording);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_OVERLAP_H_
