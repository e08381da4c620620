// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_ROWS_H_
#define PERSEUS_SRC_TRACE_TRACE_ROWS_H_

#include <string_view>
#include <vector>

#include "common/csv_records.h"
#include "trace/recording.h"

namespace perseus::trace {

// The rows of a trace's text, each checked by itself.
Parsed<std::vector<Operation>> ReadTraceRows(std::string_view text);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_ROWS_H_
