// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_ZEUS_PLAN_H_
#define PERSEUS_FORMATS_ZEUS_PLAN_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/computation.h"
#include "perseus/result.h"

namespace perseus::formats {

// One entry ('forward', 1410) of a plan for Zeus. Lines and columns (in bytes) count from 1.
struct ZeusInstruction {
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;
  int line = 0;
  int column = 0;
};

// [rank][position].
using ZeusPlan = std::vector<std::vector<ZeusInstruction>>;

// Reads the Python literal that Zeus' PointSolution evaluates and that lowtime and FormatZeusPlan()
// write: a list that has, for each rank, a list of ('forward'|'backward', MHz). Allows single or
// double quotes, comments, any white space, and trailing commas. Executes nothing. Errors begin
// with file:line:column; `name` is the file.
Result<ZeusPlan> ParseZeusPlan(std::string_view text, const std::string& name);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_ZEUS_PLAN_H_
