// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_TIME_MARGIN_TEXT_H_
#define PERSEUS_JOB_TIME_MARGIN_TEXT_H_

#include <string_view>

#include "perseus/job_file.h"
#include "perseus/result.h"

namespace perseus::job {

// Parses "2sigma", "1%", or both ("2sigma,1%": the larger one counts).
Result<TimeMargin> ParseTimeMargin(std::string_view text);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_TIME_MARGIN_TEXT_H_
