// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_OVERLAP_H_
#define PERSEUS_SRC_TRACE_OVERLAP_H_

#include <string>

#include "trace/recording.h"

namespace perseus::trace {

// Returns a sentence where starts and durations are probably not in seconds; empty: all is well.
// Either computations last longer than any does, as milliseconds read as seconds do. Or the
// computations of a rank, which runs one at a time, together take much longer than the time from
// the first start to the last end; then starts and durations have different units.
std::string OverlapNote(const Recording& recording);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_OVERLAP_H_
