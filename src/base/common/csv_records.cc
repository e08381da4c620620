// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/csv_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/nearest_name.h"
#include "common/printable.h"

namespace perseus {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsSpace(char c) { return c == ' ' || c == '\t'; }
bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

Parsed<CsvCell> CheckUtf8(CsvCell cell, std::string_view raw) {
  const std::size_t valid = ValidUtf8Prefix(raw);
  if (valid == raw.size()) return cell;
  return ProblemAt(cell.offset + valid,
                   "expected text in UTF-8, found a byte that is none; save the file as UTF-8");
}

}  // namespace

tl::unexpected<TextProblem> ProblemAt(std::size_t offset, std::string message) {
  return tl::unexpected<TextProblem>(TextProblem{offset, std::move(message)});
}

TextPosition PositionOf(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  std::size_t line_start = before.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  TextPosition position;
  for (std::size_t i = line_start; i < before.size(); ++i) {
    // "\r\n" is one line end, counted at its "\n".
    const bool crlf = before[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!IsLineEnd(before[i]) || crlf) continue;
    ++position.line;
    line_start = i + 1;
  }
  if (line_start < before.size()) position.column += CountCodePoints(before.substr(line_start));
  return position;
}

CsvRecords::CsvRecords(std::string_view text, std::size_t offset, BlankLines blank_lines)
    : text_(text), position_(offset), blank_lines_(blank_lines) {
  if (offset == 0 && text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

Parsed<bool> CsvRecords::Next(CsvRecord* record) {
  if (blank_lines_ == BlankLines::kSkipped) SkipLinesWithoutCells();
  if (position_ == text_.size()) return false;
  record->cells.clear();
  record->offset = position_;
  while (true) {
    Parsed<CsvCell> cell = ReadCell();
    if (!cell) return tl::unexpected(std::move(cell.error()));
    record->cells.push_back(*cell);
    if (AtLineEnd()) break;
    ++position_;  // The comma.
  }
  record->end = position_;
  SkipLineEnd();
  return true;
}

void CsvRecords::SkipLinesWithoutCells() {
  while (position_ < text_.size()) {
    const std::size_t line_start = position_;
    SkipSpaces();
    if (!AtLineEnd() && text_[position_] != '#') {
      position_ = line_start;
      return;
    }
    position_ = std::min(text_.find_first_of("\r\n", position_), text_.size());
    SkipLineEnd();
  }
}

void CsvRecords::SkipSpaces() {
  while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
}

void CsvRecords::SkipLineEnd() {
  if (position_ < text_.size() && text_[position_] == '\r') ++position_;
  // "\n" after "\r" belongs to it; a "\n" that ends a line never follows one.
  if (position_ < text_.size() && text_[position_] == '\n') ++position_;
}

bool CsvRecords::AtLineEnd() const {
  return position_ == text_.size() || IsLineEnd(text_[position_]);
}

// Leaves the position at the comma or the line end after the cell.
Parsed<CsvCell> CsvRecords::ReadCell() {
  SkipSpaces();
  if (position_ < text_.size() && text_[position_] == '"') return ReadQuotedCell();
  const std::size_t start = position_;
  while (!AtLineEnd() && text_[position_] != ',') {
    if (text_[position_] == '"') {
      return ProblemAt(position_,
                       "found a quote inside a cell; put the whole cell in quotes and write "
                       "each quote in it twice");
    }
    ++position_;
  }
  std::size_t end = position_;
  while (end > start && IsSpace(text_[end - 1])) --end;
  const std::string_view raw = text_.substr(start, end - start);
  return CheckUtf8({raw, start}, raw);
}

Parsed<CsvCell> CsvRecords::ReadQuotedCell() {
  const std::size_t open = position_++;
  bool escaped = false;
  std::size_t close = text_.find('"', position_);
  while (close != std::string_view::npos && close + 1 < text_.size() && text_[close + 1] == '"') {
    escaped = true;
    close = text_.find('"', close + 2);
  }
  if (close == std::string_view::npos) {
    return ProblemAt(open, "this quote is never closed; end the cell with another one");
  }
  const std::string_view raw = text_.substr(open, close + 1 - open);
  CsvCell cell{raw.substr(1, raw.size() - 2), open};
  if (escaped) {
    std::string& unescaped = unescaped_.emplace_back();
    for (std::size_t i = 0; i < cell.text.size(); ++i) {
      if (cell.text[i] == '"') ++i;  // The first of two.
      unescaped += cell.text[i];
    }
    cell.text = unescaped;
  }
  position_ = close + 1;
  SkipSpaces();
  if (!AtLineEnd() && text_[position_] != ',') {
    return ProblemAt(position_, "expected a comma or the end of the line after the quoted cell");
  }
  return CheckUtf8(cell, raw);
}

namespace {

// No time or energy of a GPU comes near; sums over ranks stay finite.
constexpr double kLargestQuantity = 1e12;

// std::from_chars takes neither spaces nor '+'.
}  // namespace

Parsed<double> ParseQuantity(const CsvCell& cell, std::string_view name, Minimum minimum) {
  const std::string_view unit = name.starts_with("time") ? "seconds" : "joules";
  const std::string_view range = minimum == Minimum::kAboveZero ? "above 0" : "0 or more";
  const auto problem = [&](std::string_view what) {
    return ProblemAt(cell.offset,
                     fmt::format("{} {} {}; expected {}, {}", name,
                                 cell.text.empty() ? "cell" : Shown(cell.text), what, unit, range));
  };
  if (cell.text.empty()) return problem("is empty");
  const Number number = ParseNumber(cell.text);
  if (number.kind == NumberKind::kNone) return problem("is not a number");
  if (number.kind == NumberKind::kNotFinite) return problem("is not a finite number");
  if (number.value < 0) return problem("is negative");
  if (number.value == 0 && minimum == Minimum::kAboveZero) return problem("is zero");
  if (number.value > kLargestQuantity) return problem("is impossibly large");
  return number.value;
}

Parsed<int> ParseIndex(const CsvCell& cell, std::string_view name, int highest) {
  std::string_view digits = Trimmed(cell.text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_integer =
      error != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (is_integer && error == std::errc() && value >= 0 && value <= highest) return value;
  const std::string_view what = cell.text.empty()       ? "is empty"
                                : !is_integer           ? "is not a whole number"
                                : digits.front() == '-' ? "is negative"
                                                        : "is too large";
  return ProblemAt(cell.offset,
                   fmt::format("{} {} {}; expected a whole number from 0 to {}", name,
                               cell.text.empty() ? "cell" : Shown(cell.text), what, highest));
}

}  // namespace perseus
