// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/file.h"

namespace perseus::sosp24 {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;
constexpr int kHighestCount = 1'000'000;

}  // namespace

Result<CsvTable> CsvTable::Read(const std::string& path,
                                const std::vector<std::string_view>& columns) {
  Result<std::string> text = ReadWholeFile(path, kMaxBytes);
  if (!text) return tl::unexpected(text.error());
  CsvTable table;
  table.path_ = path;
  table.text_ = *std::move(text);
  if (const Result<void> filled = table.Fill(columns); !filled) {
    return tl::unexpected(filled.error());
  }
  return table;
}

Result<void> CsvTable::Fill(const std::vector<std::string_view>& columns) {
  columns_.assign(columns.begin(), columns.end());
  CsvRecords records(text_);
  CsvRecord record;
  Parsed<bool> more = records.Next(&record);
  if (!more) return Fail(more.error());
  if (!*more) return InvalidInput(fmt::format("{}: is empty; expected a CSV header", path_));
  const std::size_t width = record.cells.size();
  std::vector<std::size_t> index;
  for (const std::string_view column : columns) {
    const auto found = std::find_if(record.cells.begin(), record.cells.end(),
                                    [&](const CsvCell& cell) { return cell.text == column; });
    if (found == record.cells.end()) {
      return Fail({record.offset, fmt::format("the header has no column '{}'; is this file from "
                                              "the paper's artifact?",
                                              column)});
    }
    index.push_back(static_cast<std::size_t>(found - record.cells.begin()));
  }
  for (more = records.Next(&record); more && *more; more = records.Next(&record)) {
    if (record.cells.size() != width) {
      return Fail({record.offset, fmt::format("the row has {} cells, expected {} as in the header",
                                              record.cells.size(), width)});
    }
    for (const std::size_t i : index) {
      cells_.push_back({std::string(record.cells[i].text), record.cells[i].offset});
    }
  }
  if (!more) return Fail(more.error());
  return {};
}

Result<double> CsvTable::Quantity(int row, int column, Minimum minimum) const {
  const Cell& cell = At(row, column);
  const Parsed<double> value = ParseQuantity({cell.text, cell.offset}, columns_[column], minimum);
  if (!value) return Fail(value.error());
  return *value;
}

Result<double> CsvTable::Value(int row, int column) const {
  const Cell& cell = At(row, column);
  const Number number = ParseNumber(cell.text);
  if (number.kind == NumberKind::kFinite) return number.value;
  return Fail({cell.offset, fmt::format("{} is not a finite number", columns_[column])});
}

Result<int> CsvTable::Count(int row, int column) const {
  const Cell& cell = At(row, column);
  const Parsed<int> value = ParseIndex({cell.text, cell.offset}, columns_[column], kHighestCount);
  if (!value) return Fail(value.error());
  if (*value == 0) {
    return Fail({cell.offset, fmt::format("{} is 0; expected at least 1", columns_[column])});
  }
  return *value;
}

tl::unexpected<Error> CsvTable::Fail(const TextProblem& problem) const {
  const TextPosition position = PositionOf(text_, problem.offset);
  return InvalidInput(
      fmt::format("{}:{}:{}: {}", path_, position.line, position.column, problem.message));
}

}  // namespace perseus::sosp24
