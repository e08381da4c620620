// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_CSV_TABLE_H_
#define PERSEUS_EVALUATION_CSV_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/cells.h"
#include "common/csv_records.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// Some columns of a CSV file of the artifact, by name. Errors of reading and of
// its cells name file:line:column.
class CsvTable {
 public:
  // `columns` are those that the caller wants; others are skipped.
  static Result<CsvTable> Read(const std::string& path,
                               const std::vector<std::string_view>& columns);

  int rows() const { return static_cast<int>(cells_.size() / columns_.size()); }

  // `column` is an index into `columns` of Read().
  const std::string& Text(int row, int column) const { return At(row, column).text; }
  // Seconds or joules.
  Result<double> Quantity(int row, int column, Minimum minimum) const;
  // Any finite number.
  Result<double> Value(int row, int column) const;
  // A whole number from 1 to 1,000,000.
  Result<int> Count(int row, int column) const;

 private:
  struct Cell {
    std::string text;
    std::size_t offset = 0;
  };

  CsvTable() = default;
  const Cell& At(int row, int column) const {
    return cells_[static_cast<std::size_t>(row) * columns_.size() + column];
  }
  tl::unexpected<Error> Fail(const TextProblem& problem) const;
  Result<void> Fill(const std::vector<std::string_view>& columns);

  std::string path_;
  std::string text_;
  std::vector<std::string> columns_;
  std::vector<Cell> cells_;  // Row by row.
};

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_CSV_TABLE_H_
