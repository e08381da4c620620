// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_CLOCK_LATENCY_TEXT_H_
#define PERSEUS_JOB_CLOCK_LATENCY_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/result.h"

namespace perseus::job {

// Parses "1410=9ms,600=30ms", for job files and flags.
Result<std::vector<ClockLatency>> ParseClockLatencies(std::string_view text);
// The same text, in seconds.
std::string ClockLatenciesText(const std::vector<ClockLatency>& latencies);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_CLOCK_LATENCY_TEXT_H_
