// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_ZEUS_ROWS_H_
#define PERSEUS_EVALUATION_ZEUS_ROWS_H_

#include <filesystem>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/sosp24.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// Rows of one of the Zeus baselines, in the order of the file.
struct ZeusRow {
  double power_limit_watts = 0;  // Of the first stage.
  Sosp24Point point;
};

// The rows of `file` for one job; none where there is no file.
Result<std::vector<ZeusRow>> ReadZeus(const std::filesystem::path& file, const Workload& workload);

std::vector<Sosp24Point> Points(const std::vector<ZeusRow>& rows);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_ZEUS_ROWS_H_
