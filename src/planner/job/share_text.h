// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_SHARE_TEXT_H_
#define PERSEUS_JOB_SHARE_TEXT_H_

#include <string_view>

#include "common/tree_reader.h"
#include "perseus/result.h"

namespace perseus::job {

// Parses a share, "1%" or "0.01", for job files and flags.
Result<double> ParseShare(std::string_view text, const NumberRange& range);
// Checks a share that is given as a number.
Result<double> CheckShare(double share, const NumberRange& range);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_SHARE_TEXT_H_
