// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_CSV_RECORDS_H_
#define PERSEUS_COMMON_CSV_RECORDS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "common/numbers.h"

namespace perseus {

// A fault in a text, and its byte offset. Parsers use offsets; PositionOf() turns one into line and
// column for a message.
struct TextProblem {
  std::size_t offset = 0;
  std::string message;
};

template <typename T>
using Parsed = tl::expected<T, TextProblem>;

tl::unexpected<TextProblem> ProblemAt(std::size_t offset, std::string message);

// 1-based. Columns count code points of UTF-8; a byte order mark does not count.
struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;
};
TextPosition PositionOf(std::string_view text, std::size_t offset);

struct CsvCell {
  std::string_view text;   // Spaces around it and its quotes removed.
  std::size_t offset = 0;  // Offset of its first character or opening quote.
};

struct CsvRecord {
  std::vector<CsvCell> cells;
  std::size_t offset = 0;
  std::size_t end = 0;  // Offset of its line end, or of the text's end.
};

// Whether lines that are blank or begin with '#' are skipped or read as records.
enum class BlankLines { kSkipped, kRecords };

// Walks the records of a CSV text (RFC 4180; lines end in "\n", "\r\n" or
// "\r") from an offset on. Skips a byte order mark. `text` must outlive the
// reader, and the reader its cells.
class CsvRecords {
 public:
  explicit CsvRecords(std::string_view text, std::size_t offset = 0,
                      BlankLines blank_lines = BlankLines::kSkipped);

  // Fills `record` with the next one; false at the end of the text.
  Parsed<bool> Next(CsvRecord* record);

 private:
  void SkipLinesWithoutCells();
  void SkipSpaces();
  void SkipLineEnd();
  Parsed<CsvCell> ReadCell();
  Parsed<CsvCell> ReadQuotedCell();
  bool AtLineEnd() const;

  std::string_view text_;
  std::size_t position_;
  BlankLines blank_lines_;
  std::deque<std::string> unescaped_;  // Cells with doubled quotes.
};

enum class Minimum { kZero, kAboveZero };

// A time, energy or spread. `name` is the column's.
Parsed<double> ParseQuantity(const CsvCell& cell, std::string_view name, Minimum minimum);

// A whole number from 0 to `highest`.
Parsed<int> ParseIndex(const CsvCell& cell, std::string_view name, int highest);

}  // namespace perseus

#endif  // PERSEUS_COMMON_CSV_RECORDS_H_
