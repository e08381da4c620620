// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_REPORT_TRACE_READER_H_
#define PERSEUS_TESTS_REPORT_TRACE_READER_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace perseus::report {

// The events of a timeline.pftrace, in their order, with the names of Chrome's trace events
// ("ph": M, X, C or i; "ts" and "dur" in microseconds). tests/oracle/test_trace.py reads
// traces with Perfetto's own schema.
nlohmann::json ReadTrace(std::string_view bytes);

}  // namespace perseus::report

#endif  // PERSEUS_TESTS_REPORT_TRACE_READER_H_
