// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace perseus::store {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static_assert(kLetters.size() * kLetters.size() == kMaxKnobs);

int ValueOfLetter(char letter) {
  const std::size_t value = kLetters.find(letter);
  return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

// The parts of a text between separators; none of an empty text.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

template <typename T>
bool ParseOne(std::string_view text, T* value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return fault == std::errc() && end == text.data() + text.size();
}

template <typename T>
std::optional<std::vector<T>> ParseList(std::string_view text) {
  std::vector<T> values;
  for (const std::string_view part : Split(text, ' ')) {
    if (!ParseOne(part, &values.emplace_back())) return std::nullopt;
  }
  return values;
}

std::optional<ComputationType> TypeOfLetter(std::string_view letter) {
  for (int i = 0; i < kNumComputationTypes; ++i) {
    const auto type = static_cast<ComputationType>(i);
    if (letter.size() == 1 && letter[0] == ComputationTypeLetter(type)) return type;
  }
  return std::nullopt;
}

}  // namespace

std::string FormatIntegers(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

std::optional<std::vector<int>> ParseIntegers(std::string_view text) {
  return ParseList<int>(text);
}

std::string FormatNumbers(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

std::optional<std::vector<double>> ParseNumbers(std::string_view text) {
  return ParseList<double>(text);
}

std::string FormatKnobs(const std::vector<int>& knobs) {
  std::string text;
  text.reserve(2 * knobs.size());
  for (const int knob : knobs) {
    text += kLetters[static_cast<std::size_t>(knob) / kLetters.size()];
    text += kLetters[static_cast<std::size_t>(knob) % kLetters.size()];
  }
  return text;
}

std::optional<std::vector<int>> ParseKnobs(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<int> knobs;
  knobs.reserve(text.size() / 2);
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = ValueOfLetter(text[at]);
    const int low = ValueOfLetter(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    knobs.push_back(high * static_cast<int>(kLetters.size()) + low);
  }
  return knobs;
}

std::string FormatRows(const std::vector<MeasuredRow>& rows) {
  fmt::memory_buffer text;
  for (const MeasuredRow& row : rows) {
    fmt::format_to(fmt::appender(text), "{}{} {} {} {} {} {}", text.size() == 0 ? "" : ";",
                   row.stage, ComputationTypeLetter(row.type), row.clock_mhz, row.time_seconds,
                   row.energy_joules, row.samples);
  }
  return fmt::to_string(text);
}

std::optional<std::vector<MeasuredRow>> ParseRows(std::string_view text) {
  std::vector<MeasuredRow> rows;
  for (const std::string_view part : Split(text, ';')) {
    const std::vector<std::string_view> cells = Split(part, ' ');
    if (cells.size() != 6) return std::nullopt;
    MeasuredRow& row = rows.emplace_back();
    const std::optional<ComputationType> type = TypeOfLetter(cells[1]);
    if (!type || !ParseOne(cells[0], &row.stage) || !ParseOne(cells[2], &row.clock_mhz) ||
        !ParseOne(cells[3], &row.time_seconds) || !ParseOne(cells[4], &row.energy_joules) ||
        !ParseOne(cells[5], &row.samples)) {
      return std::nullopt;
    }
    row.type = *type;
  }
  return rows;
}

std::string FormatExceptions(const std::map<int, std::int64_t>& exceptions) {
  fmt::memory_buffer text;
  for (const auto& [pipeline, plan] : exceptions) {
    fmt::format_to(fmt::appender(text), "{}{} {}", text.size() == 0 ? "" : ";", pipeline, plan);
  }
  return fmt::to_string(text);
}

std::optional<std::map<int, std::int64_t>> ParseExceptions(std::string_view text) {
  std::map<int, std::int64_t> exceptions;
  for (const std::string_view part : Split(text, ';')) {
    const std::vector<std::string_view> cells = Split(part, ' ');
    int pipeline = 0;
    std::int64_t plan = 0;
    if (cells.size() != 2 || !ParseOne(cells[0], &pipeline) || !ParseOne(cells[1], &plan)) {
      return std::nullopt;
    }
    exceptions[pipeline] = plan;
  }
  return exceptions;
}

}  // namespace perseus::store
