// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>
#include <variant>

namespace perseus::store {
namespace {

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

// All words of a text, one for each value.
template <typename... T>
bool ParseAll(std::string_view text, T*... values) {
  const std::vector<std::string_view> words = Split(text, ' ');
  std::size_t next = 0;
  return words.size() == sizeof...(T) && (ParseOne(words[next++], values) && ...);
}

template <typename T>
bool ParseList(std::string_view text, char separator, std::vector<T>* values) {
  values->clear();
  const std::vector<std::string_view> parts = Split(text, separator);
  values->reserve(parts.size());
  return std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return ParseOne(part, &values->emplace_back());
  });
}

// Values of a row that are written only if known, each behind its letter: "t0.01".
using Extra = std::variant<double MeasuredRow::*, std::optional<double> MeasuredRow::*,
                           std::vector<double> MeasuredRow::*, bool MeasuredRow::*>;
constexpr std::array<std::pair<char, Extra>, 11> kExtras = {{
    {'t', &MeasuredRow::time_std_seconds},
    {'e', &MeasuredRow::energy_std_joules},
    {'x', &MeasuredRow::throttled},
    {'c', &MeasuredRow::temperature_celsius},
    {'w', &MeasuredRow::work},
    {'u', &MeasuredRow::seconds_per_work},
    {'v', &MeasuredRow::joules_per_work},
    {'r', &MeasuredRow::time_residual_std_seconds},
    {'s', &MeasuredRow::energy_residual_std_joules},
    {'f', &MeasuredRow::time_sources},
    {'g', &MeasuredRow::power_sources},
}};

std::string TextOf(double value) { return value == 0 ? "" : fmt::format("{}", value); }
std::string TextOf(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}
std::string TextOf(const std::vector<double>& values) {
  return fmt::format("{:.4g}", fmt::join(values, ":"));
}
std::string TextOf(bool value) { return value ? "1" : ""; }

bool ParseText(std::string_view text, double* value) { return ParseOne(text, value); }
bool ParseText(std::string_view text, std::optional<double>* value) {
  return ParseOne(text, &value->emplace());
}
bool ParseText(std::string_view text, std::vector<double>* values) {
  return ParseList(text, ':', values);
}
bool ParseText(std::string_view text, bool* value) {
  *value = true;
  return text == "1";
}

bool ParseExtra(std::string_view word, MeasuredRow* row) {
  if (word.empty()) return false;
  const auto* const known = std::find_if(kExtras.begin(), kExtras.end(), [&](const auto& extra) {
    return extra.first == word.front();
  });
  return known != kExtras.end() &&
         std::visit([&](auto member) { return ParseText(word.substr(1), &(row->*member)); },
                    known->second);
}

bool ParseType(std::string_view letter, ComputationType* type) {
  for (int i = 0; i < kNumComputationTypes; ++i) {
    *type = static_cast<ComputationType>(i);
    if (letter.size() == 1 && letter[0] == ComputationTypeLetter(*type)) return true;
  }
  return false;
}

}  // namespace

std::string CellOf(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}
bool ReadCell(std::string_view text, std::vector<int>* values) {
  return ParseList(text, ' ', values);
}

std::string CellOf(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}
bool ReadCell(std::string_view text, std::vector<double>* values) {
  return ParseList(text, ' ', values);
}

std::string CellOf(const std::vector<MeasuredRow>& rows) {
  fmt::memory_buffer text;
  for (const MeasuredRow& row : rows) {
    fmt::format_to(fmt::appender(text), "{}{} {} {} {} {} {}", text.size() == 0 ? "" : ";",
                   row.stage, ComputationTypeLetter(row.type), row.clock_mhz, row.time_seconds,
                   row.energy_joules, row.samples);
    for (const auto& [letter, extra] : kExtras) {
      const std::string said = std::visit([&](auto member) { return TextOf(row.*member); }, extra);
      if (!said.empty()) fmt::format_to(fmt::appender(text), " {}{}", letter, said);
    }
  }
  return fmt::to_string(text);
}

bool ReadCell(std::string_view text, std::vector<MeasuredRow>* rows) {
  rows->clear();
  for (const std::string_view part : Split(text, ';')) {
    const std::vector<std::string_view> words = Split(part, ' ');
    MeasuredRow& row = rows->emplace_back();
    if (words.size() < 6 || !ParseOne(words[0], &row.stage) || !ParseType(words[1], &row.type) ||
        !ParseOne(words[2], &row.clock_mhz) || !ParseOne(words[3], &row.time_seconds) ||
        !ParseOne(words[4], &row.energy_joules) || !ParseOne(words[5], &row.samples) ||
        !std::all_of(words.begin() + 6, words.end(),
                     [&](std::string_view word) { return ParseExtra(word, &row); })) {
      return false;
    }
  }
  return true;
}

std::string CellOf(const std::optional<SweepCost>& sweep) {
  if (!sweep) return "";
  return fmt::format("{} {} {} {} {}", sweep->iterations, sweep->seconds, sweep->joules,
                     sweep->extra_seconds, sweep->extra_joules);
}

bool ReadCell(std::string_view text, std::optional<SweepCost>* sweep) {
  sweep->reset();
  if (text.empty()) return true;
  SweepCost& cost = sweep->emplace();
  return ParseAll(text, &cost.iterations, &cost.seconds, &cost.joules, &cost.extra_seconds,
                  &cost.extra_joules);
}

std::string CellOf(const std::vector<MeasuredWaiting>& rows) {
  std::vector<std::string> cells;
  cells.reserve(rows.size());
  for (const MeasuredWaiting& row : rows) {
    cells.push_back(fmt::format("{} {} {}", row.clock_mhz, row.watts, row.std_watts));
  }
  return fmt::format("{}", fmt::join(cells, ";"));
}

bool ReadCell(std::string_view text, std::vector<MeasuredWaiting>* rows) {
  rows->clear();
  for (const std::string_view part : Split(text, ';')) {
    MeasuredWaiting& row = rows->emplace_back();
    if (!ParseAll(part, &row.clock_mhz, &row.watts, &row.std_watts)) return false;
  }
  return true;
}

std::string CellOf(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

bool ReadCell(std::string_view text, std::vector<std::string>* lines) {
  lines->clear();
  for (const std::string_view line : Split(text, '\n')) lines->emplace_back(line);
  return true;
}

std::string CellOf(const JobLabels& labels) { return LabelsText(labels, " "); }

bool ReadCell(std::string_view text, JobLabels* labels) {
  labels->clear();
  for (const std::string_view part : Split(text, ' ')) {
    auto label = ParseLabel(part);
    if (!label || !labels->insert(*std::move(label)).second) return false;
  }
  return true;
}

std::string CellOf(const std::map<int, std::int64_t>& exceptions) {
  fmt::memory_buffer text;
  for (const auto& [pipeline, plan] : exceptions) {
    fmt::format_to(fmt::appender(text), "{}{} {}", text.size() == 0 ? "" : ";", pipeline, plan);
  }
  return fmt::to_string(text);
}

bool ReadCell(std::string_view text, std::map<int, std::int64_t>* exceptions) {
  exceptions->clear();
  for (const std::string_view part : Split(text, ';')) {
    int pipeline = 0;
    std::int64_t plan = 0;
    if (!ParseAll(part, &pipeline, &plan)) return false;
    (*exceptions)[pipeline] = plan;
  }
  return true;
}

std::string CellOf(JobState state) { return std::string(JobStateName(state)); }

bool ReadCell(std::string_view text, JobState* state) {
  const auto* const found = std::find(kJobStateNames.begin(), kJobStateNames.end(), text);
  if (found == kJobStateNames.end()) return false;
  *state = static_cast<JobState>(found - kJobStateNames.begin());
  return true;
}

}  // namespace perseus::store
