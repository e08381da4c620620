// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/cells.h"

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
#include <utility>
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

// "f0.01:-0.002"
bool ParseSources(std::string_view text, std::vector<double>* sources) {
  for (const std::string_view part : Split(text, ':')) {
    if (!ParseOne(part, &sources->emplace_back())) return false;
  }
  return true;
}

// "t0.01": what FormatRows() adds where it was said.
bool ParseExtra(std::string_view cell, MeasuredRow* row) {
  double value = 0;
  if (cell.starts_with('f')) return ParseSources(cell.substr(1), &row->time_sources);
  if (cell.starts_with('g')) return ParseSources(cell.substr(1), &row->power_sources);
  if (cell.empty() || !ParseOne(cell.substr(1), &value)) return false;
  switch (cell.front()) {
    case 't':
      row->time_std_seconds = value;
      return true;
    case 'e':
      row->energy_std_joules = value;
      return true;
    case 'x':
      row->throttled = true;
      return true;
    case 'c':
      row->temperature_celsius = value;
      return true;
    case 'w':
      row->work = value;
      return true;
    case 'u':
      row->seconds_per_work = value;
      return true;
    case 'v':
      row->joules_per_work = value;
      return true;
    case 'r':
      row->time_residual_std_seconds = value;
      return true;
    case 's':
      row->energy_residual_std_joules = value;
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string FormatSweep(const std::optional<SweepCost>& sweep) {
  if (!sweep) return "";
  return fmt::format("{} {} {} {} {}", sweep->iterations, sweep->seconds, sweep->joules,
                     sweep->extra_seconds, sweep->extra_joules);
}

bool ParseSweep(std::string_view text, std::optional<SweepCost>* sweep) {
  sweep->reset();
  if (text.empty()) return true;
  const std::vector<std::string_view> cells = Split(text, ' ');
  SweepCost& cost = sweep->emplace();
  return cells.size() == 5 && ParseOne(cells[0], &cost.iterations) &&
         ParseOne(cells[1], &cost.seconds) && ParseOne(cells[2], &cost.joules) &&
         ParseOne(cells[3], &cost.extra_seconds) && ParseOne(cells[4], &cost.extra_joules);
}

std::string FormatWaiting(const std::vector<MeasuredWaiting>& rows) {
  std::vector<std::string> cells;
  cells.reserve(rows.size());
  for (const MeasuredWaiting& row : rows) {
    cells.push_back(fmt::format("{} {} {}", row.clock_mhz, row.watts, row.std_watts));
  }
  return fmt::format("{}", fmt::join(cells, ";"));
}

std::optional<std::vector<MeasuredWaiting>> ParseWaiting(std::string_view text) {
  std::vector<MeasuredWaiting> rows;
  for (const std::string_view part : Split(text, ';')) {
    const std::vector<std::string_view> cells = Split(part, ' ');
    MeasuredWaiting& row = rows.emplace_back();
    if (cells.size() != 3 || !ParseOne(cells[0], &row.clock_mhz) ||
        !ParseOne(cells[1], &row.watts) || !ParseOne(cells[2], &row.std_watts)) {
      return std::nullopt;
    }
  }
  return rows;
}

std::string FormatLines(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::vector<std::string> ParseLines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Split(text, '\n')) lines.emplace_back(line);
  return lines;
}

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
    const auto add = [&](char tag, double value, bool is_said) {
      if (is_said) fmt::format_to(fmt::appender(text), " {}{}", tag, value);
    };
    add('t', row.time_std_seconds, row.time_std_seconds != 0);
    add('e', row.energy_std_joules, row.energy_std_joules != 0);
    add('x', 1, row.throttled);
    add('c', row.temperature_celsius.value_or(0), row.temperature_celsius.has_value());
    add('w', row.work, row.work != 0);
    add('u', row.seconds_per_work.value_or(0), row.seconds_per_work.has_value());
    add('v', row.joules_per_work.value_or(0), row.joules_per_work.has_value());
    add('r', row.time_residual_std_seconds, row.time_residual_std_seconds != 0);
    for (const auto& [tag, sources] :
         {std::pair('f', &row.time_sources), std::pair('g', &row.power_sources)}) {
      if (sources->empty()) continue;
      fmt::format_to(fmt::appender(text), " {}{:.4g}", tag, fmt::join(*sources, ":"));
    }
    add('s', row.energy_residual_std_joules, row.energy_residual_std_joules != 0);
  }
  return fmt::to_string(text);
}

std::optional<std::vector<MeasuredRow>> ParseRows(std::string_view text) {
  std::vector<MeasuredRow> rows;
  for (const std::string_view part : Split(text, ';')) {
    const std::vector<std::string_view> cells = Split(part, ' ');
    if (cells.size() < 6) return std::nullopt;
    MeasuredRow& row = rows.emplace_back();
    const std::optional<ComputationType> type = TypeOfLetter(cells[1]);
    if (!type || !ParseOne(cells[0], &row.stage) || !ParseOne(cells[2], &row.clock_mhz) ||
        !ParseOne(cells[3], &row.time_seconds) || !ParseOne(cells[4], &row.energy_joules) ||
        !ParseOne(cells[5], &row.samples)) {
      return std::nullopt;
    }
    row.type = *type;
    for (std::size_t i = 6; i < cells.size(); ++i) {
      if (!ParseExtra(cells[i], &row)) return std::nullopt;
    }
  }
  return rows;
}

std::string FormatLabels(const JobLabels& labels) { return LabelsText(labels, " "); }

std::optional<JobLabels> ParseLabels(std::string_view text) {
  JobLabels labels;
  for (const std::string_view part : Split(text, ' ')) {
    auto label = ParseLabel(part);
    if (!label || !labels.insert(*std::move(label)).second) return std::nullopt;
  }
  return labels;
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
