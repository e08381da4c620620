// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_RANGE_TEXT_H_
#define PERSEUS_JOB_RANGE_TEXT_H_

#include <functional>
#include <string_view>

#include "perseus/conditions.h"
#include "perseus/result.h"

namespace perseus::job {

// Parses "15ms", "10ms-30ms" or "10-30ms", for job files and flags. `parse` reads one number with
// its unit. The first may leave its unit to the second.
Result<ValueRange> ParseValueRange(std::string_view text,
                                   const std::function<Result<double>(std::string_view)>& parse);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_RANGE_TEXT_H_
