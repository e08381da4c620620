// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/csv_cells.h"

#include <fmt/core.h>

#include <algorithm>

namespace perseus::pipeline {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string_view name) : text_(text), name_(name) {
  if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text_.remove_prefix(kByteOrderMark.size());
  }
}

tl::unexpected<Error> CsvReader::ErrorAt(std::size_t position, std::string_view problem) const {
  return InvalidInput(
      fmt::format("{}:{}:{}: {}", name_, line_, position - line_start_ + 1, problem));
}

Result<std::optional<CsvCell>> CsvReader::Next() {
  if (at_line_start_ && position_ == text_.size()) return std::optional<CsvCell>();
  at_line_start_ = false;
  const auto end_of = [&](std::string_view stops, std::size_t from) {
    return std::min(text_.find_first_of(stops, from), text_.size());
  };
  while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;

  CsvCell cell;
  cell.line = line_;
  std::size_t begin = position_;
  std::size_t end;
  std::size_t delimiter;
  if (begin < text_.size() && text_[begin] == '"') {
    ++begin;
    end = end_of("\"\r\n", begin);
    if (end == text_.size() || text_[end] != '"') {
      return ErrorAt(begin - 1, "the quoted cell has no closing quote on its line");
    }
    delimiter = end + 1;
    while (delimiter < text_.size() && IsSpace(text_[delimiter])) ++delimiter;
    if (end_of(",\r\n", delimiter) != delimiter) {
      return ErrorAt(delimiter, "expected a comma or the end of the line after the quoted cell");
    }
    while (begin < end && IsSpace(text_[begin])) ++begin;
  } else {
    end = delimiter = end_of(",\r\n", begin);
  }
  while (end > begin && IsSpace(text_[end - 1])) --end;
  cell.text = text_.substr(begin, end - begin);
  cell.column = static_cast<int>(begin - line_start_) + 1;
  for (std::size_t i = begin; i < end; ++i) {
    if (IsControl(text_[i])) return ErrorAt(i, "control character: this is not a text file");
  }

  position_ = delimiter;
  if (position_ < text_.size() && text_[position_] == ',') {
    ++position_;
    return cell;
  }
  cell.last_of_line = true;
  if (position_ < text_.size()) {
    if (text_[position_] == '\r') {
      ++position_;
      if (position_ == text_.size() || text_[position_] != '\n') {
        return ErrorAt(position_ - 1, "carriage return without a line feed");
      }
    }
    ++position_;
    ++line_;
    line_start_ = position_;
  }
  at_line_start_ = true;
  return cell;
}

}  // namespace perseus::pipeline
