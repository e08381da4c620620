// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_DRAWINGS_H_
#define PERSEUS_SRC_TRACE_TRACE_DRAWINGS_H_

#include <string>
#include <vector>

#include "trace/recording.h"

namespace perseus::trace {

// SVG of one colour a rank: pipelines from left to right, stages from top to bottom.
// `slowdowns` by Recording::Place.
std::string DrawHeatMap(const Recording& recording, const std::vector<double>& slowdowns);

// Lanes of one pipeline in one step, a stage each, as recorded.
std::string DrawRecordedLanes(const Recording& recording, int step_index, int pipeline);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_DRAWINGS_H_
