// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_DURATION_TEXT_H_
#define PERSEUS_JOB_DURATION_TEXT_H_

#include <string_view>

#include "perseus/result.h"

namespace perseus::job {

// Parses "0.02", "0.02s", "20ms" or "500us" to seconds, for job files and flags. At most
// kMaxSeconds (job/limits.h).
Result<double> ParseDuration(std::string_view text);

// The same, and also "2min", "1h", "30d": for what may last long. At most 1e9 s.
Result<double> ParseLongDuration(std::string_view text);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_DURATION_TEXT_H_
