// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_SHARE_TEXT_H_
#define PERSEUS_JOB_SHARE_TEXT_H_

#include <string_view>

#include "common/tree_reader.h"
#include "perseus/result.h"

namespace perseus::job {

// A share: "1%" or "0.01", the same in a job file and as a flag.
Result<double> ParseShare(std::string_view text, const NumberRange& range);
// The same of a number; it may be anything.
Result<double> CheckShare(double share, const NumberRange& range);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_SHARE_TEXT_H_
