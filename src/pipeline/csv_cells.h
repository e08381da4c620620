// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_CSV_CELLS_H_
#define PERSEUS_PIPELINE_CSV_CELLS_H_

#include <optional>
#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus::pipeline {

// One cell of a CSV text, spaces around it removed.
struct CsvCell {
  std::string_view text;  // Into the whole text; without its quotes.
  int line = 0;           // 1-based.
  int column = 0;         // 1-based byte of the cell's first character.
  bool last_of_line = false;
};

// Walks the cells of a CSV text (RFC 4180, "\n" or "\r\n") in order. Quoted
// cells may hold commas, not line ends; a quote inside one ("") is refused, as
// no cell of ours can hold one. `text` must outlive the reader and its cells.
class CsvReader {
 public:
  // `name` stands for the file in errors.
  CsvReader(std::string_view text, std::string_view name);

  // The next cell, or nullopt at the end. An empty line is one empty cell; the
  // end of the last line begins no new one.
  Result<std::optional<CsvCell>> Next();

 private:
  tl::unexpected<Error> ErrorAt(std::size_t position, std::string_view problem) const;

  std::string_view text_;
  std::string_view name_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
};

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_CSV_CELLS_H_
