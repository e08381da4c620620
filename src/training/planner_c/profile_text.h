// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_PROFILE_TEXT_H_
#define PERSEUS_PLANNER_C_PROFILE_TEXT_H_

#include <string>

#include "perseus/planner_c.h"
#include "perseus/result.h"

namespace perseus::planner_c {

// The CSV of a profile in arrays: numbers in their shortest digits, so that they are read back to
// the same bits. Row i is line i + 2. Errors: arrays that are missing, a text with a line's end.
Result<std::string> ProfileText(const perseus_profile_arrays& arrays);

}  // namespace perseus::planner_c

#endif  // PERSEUS_PLANNER_C_PROFILE_TEXT_H_
