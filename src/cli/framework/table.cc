// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "common/printable.h"

namespace perseus::cli {
namespace {

void AppendRepeated(std::string* out, std::string_view piece, int times) {
  for (int i = 0; i < times; ++i) out->append(piece);
}

// The largest unit in which `value` is at least 1, so that a microsecond and
// a kilosecond both show their digits.
std::string WithUnit(double value, std::string_view unit, int decimals) {
  const double size = std::abs(value);
  if (size == 0 || size >= 1) return fmt::format("{} {}", WithThousands(value, decimals), unit);
  if (size >= 1e-3) return fmt::format("{} m{}", WithThousands(value * 1e3, decimals), unit);
  return fmt::format("{} u{}", WithThousands(value * 1e6, decimals), unit);
}

}  // namespace

Table::Table(std::vector<std::string> header, std::vector<Align> alignment)
    : header_(std::move(header)), alignment_(std::move(alignment)) {
  alignment_.resize(header_.size(), Align::kRight);
}

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = CutTo(kWidestCell, Printable(cell), "\u2026");
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Format(std::string_view line) const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < header_.size(); ++column) {
    int width = DisplayWidth(header_[column]);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[column]));
    widths.push_back(width);
  }
  std::string out;
  const auto append_row = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += "  ";
      const int padding = widths[column] - DisplayWidth(cells[column]);
      if (alignment_[column] == Align::kRight) AppendRepeated(&text, " ", padding);
      text += cells[column];
      if (alignment_[column] == Align::kLeft) AppendRepeated(&text, " ", padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text;
    out += '\n';
  };
  append_row(header_);
  int total = 2 * static_cast<int>(widths.size() - 1);
  for (const int width : widths) total += width;
  AppendRepeated(&out, line, total);
  out += '\n';
  for (const auto& row : rows_) append_row(row);
  return out;
}

std::string Wrap(std::string_view text, int width, int indent) {
  std::string out;
  int column = indent;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const int length = DisplayWidth(word);
    if (column > indent && column + 1 + length > width) {
      out += '\n';
      out.append(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
    at = end + 1;
  }
  return out;
}

std::string WithoutControls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t ours = 0;
    for (const std::string_view kept : {"\n", "\t", "\r\n", "\x1b[1m", "\x1b[2m", "\x1b[0m"}) {
      if (text.starts_with(kept)) ours = kept.size();
    }
    out.append(text.substr(0, ours));
    text.remove_prefix(ours > 0 ? ours : AppendPrintable(text, &out));
  }
  return out;
}

int DisplayWidth(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string WithThousands(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  if (!std::isfinite(value)) return digits;
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  // "-0.00" reads like a defect.
  const bool is_zero = digits.find_first_not_of("-0.") == std::string::npos;
  std::string out(first == 1 && !is_zero ? "-" : "");
  for (std::size_t i = first; i < digits.size(); ++i) {
    if (i > first && i < point && (point - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string CountOf(long long count, std::string_view noun) {
  const std::string_view plural = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", WithThousands(static_cast<double>(count), 0), noun, plural);
}

std::string FormatSeconds(double seconds) {
  const bool in_seconds = seconds == 0 || std::abs(seconds) >= 1;
  return WithUnit(seconds, "s", in_seconds ? 4 : 2);
}

std::string FormatJoules(double joules) {
  if (std::abs(joules) >= 1e6) return fmt::format("{} MJ", WithThousands(joules * 1e-6, 3));
  return WithUnit(joules, "J", 1);
}

std::string FormatWatts(double watts) {
  const double size = std::abs(watts);
  if (size >= 1e5) return fmt::format("{} kW", WithThousands(watts * 1e-3, 1));
  if (size < 0.01) return WithUnit(watts, "W", 2);
  return fmt::format("{} W", WithThousands(watts, size < 10 ? 2 : 1));
}

std::string FormatPercent(double percent, int decimals) {
  return fmt::format("{} %", WithThousands(percent, decimals));
}

std::string FormatSignedPercent(double percent, int decimals) {
  const std::string text = FormatPercent(percent, decimals);
  return text[0] == '-' ? text : fmt::format("+{}", text);
}

namespace {

std::string_view LevelName(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kFault:
      break;
  }
  return "fault";
}

std::string FindingText(const Finding& finding, const Style& style) {
  constexpr int kIndent = 20;
  std::string head = fmt::format("{:<8} {:<10} ", LevelName(finding.level), finding.about);
  if (finding.level == FindingLevel::kFault) head = style.Bold(head);
  std::string text = fmt::format("{}{}\n", head, Wrap(finding.message, style.columns, kIndent));
  if (!finding.fix.empty()) {
    text += fmt::format("{:{}}{}\n", "", kIndent,
                        Wrap("To do: " + finding.fix, style.columns, kIndent));
  }
  return text;
}

}  // namespace

long long CountOfLevel(const std::vector<Finding>& findings, FindingLevel level) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.level == level; });
}

std::string FormatFindings(const std::vector<Finding>& findings, const Style& style) {
  std::string text;
  for (const Finding& finding : findings) text += FindingText(finding, style);
  return text;
}

nlohmann::ordered_json FindingsJson(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"level", LevelName(finding.level)},
                    {"about", finding.about},
                    {"message", finding.message},
                    {"fix", finding.fix}});
  }
  return json;
}

}  // namespace perseus::cli
