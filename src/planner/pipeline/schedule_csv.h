// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_SCHEDULE_CSV_H_
#define PERSEUS_PIPELINE_SCHEDULE_CSV_H_

#include <optional>
#include <string>
#include <string_view>

#include "perseus/schedule.h"

namespace perseus::pipeline {

// PyTorch's spelling: "0F3", "(0F3;1B0)OVERLAP_F_B"; and "0R3", "(0R3;0B3)OVERLAP_F_B".
std::string ComputationText(const ComputationId& id);
std::string StepText(const ScheduleStep& step);

// The content of one cell of PyTorch's CSV.
struct ParsedCell {
  std::optional<ScheduleStep> step;  // Empty: idle, or communication.
};

// Why a cell cannot be read, and at which of its bytes (0-based).
struct CellError {
  std::size_t offset = 0;
  std::string problem;
};

// Reads a cell; strict: nothing may follow the computation.
tl::expected<ParsedCell, CellError> ParseCell(std::string_view text);

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_SCHEDULE_CSV_H_
