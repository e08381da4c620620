// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/zeus_rows.h"

#include <utility>

#include "evaluation/artifact.h"
#include "evaluation/csv_table.h"

namespace perseus::sosp24 {

Result<std::vector<ZeusRow>> ReadZeus(const std::filesystem::path& file, const Workload& workload) {
  std::vector<ZeusRow> rows;
  if (!IsFile(file)) return rows;
  const auto table = CsvTable::Read(
      file.string(), {"model_name", "partition_method", "dp", "tp", "pp", "microbatch_size",
                      "num_microbatches", "power_limit_0", "time", "energy"});
  if (!table) return tl::unexpected(table.error());
  for (int row = 0; row < table->rows(); ++row) {
    if (table->Text(row, 0) != workload.model || table->Text(row, 1) != workload.partition)
      continue;
    bool same = true;
    for (const auto& [column, value] :
         {std::pair(2, workload.data_parallel), std::pair(3, workload.tensor_parallel),
          std::pair(4, workload.stages), std::pair(5, workload.microbatch_size),
          std::pair(6, workload.microbatches)}) {
      const Result<int> count = table->Count(row, column);
      if (!count) return tl::unexpected(count.error());
      same = same && *count == value;
    }
    if (!same) continue;
    const Result<double> limit = table->Value(row, 7);
    if (!limit) return tl::unexpected(limit.error());
    const Result<double> time = table->Quantity(row, 8, Minimum::kAboveZero);
    if (!time) return tl::unexpected(time.error());
    const Result<double> energy = table->Quantity(row, 9, Minimum::kAboveZero);
    if (!energy) return tl::unexpected(energy.error());
    rows.push_back({*limit, {*time, *energy}});
  }
  return rows;
}

std::vector<Sosp24Point> Points(const std::vector<ZeusRow>& rows) {
  std::vector<Sosp24Point> points;
  points.reserve(rows.size());
  for (const ZeusRow& row : rows) points.push_back(row.point);
  return points;
}

}  // namespace perseus::sosp24
