// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/error_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "common/numbers.h"

namespace perseus::profile {
namespace {

constexpr std::size_t kMostNumbers = 65;

// "0.001 0.0008 -0.0002"
std::optional<std::vector<double>> Numbers(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::optional<double> number = ParseFinite(text.substr(0, end));
    if (!number || numbers.size() == kMostNumbers) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (numbers.empty() || !(numbers.front() >= 0)) return std::nullopt;
  return numbers;
}

std::optional<std::array<std::vector<double>, 3>> Lists(std::string_view text) {
  std::array<std::vector<double>, 3> lists;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::size_t end = std::min(text.find('|'), text.size());
    auto numbers = Numbers(text.substr(0, end));
    if (!numbers || (end == text.size()) != (i + 1 == lists.size())) return std::nullopt;
    lists[i] = *std::move(numbers);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lists;
}

}  // namespace

std::string FormatErrorSources(const OptionErrors& errors) {
  const auto list = [](double std, const std::vector<double>& sources) {
    std::string text = fmt::format("{:.3g}", std);
    for (const double source : sources) text += fmt::format(" {:.3g}", source);
    return text;
  };
  return fmt::format("{}|{}|{:.3g}", list(errors.time_std, errors.time_sources),
                     list(errors.power_std, errors.power_sources), errors.blocking_std);
}

Parsed<std::vector<OptionErrors>> ReadErrorSources(std::string_view text, const Rows& rows) {
  std::vector<OptionErrors> errors;
  if (!rows.columns.Has(Column::kErrorSources)) return errors;
  for (const Row& row : rows.rows) {
    CsvRecords records(text, row.offset);
    CsvRecord record;
    const Parsed<bool> found = records.Next(&record);
    if (!found || !*found || row.rank != RankIdentity{}) return std::vector<OptionErrors>();
    const CsvCell& cell = rows.columns.CellOf(record, Column::kErrorSources);
    if (cell.text.empty()) return std::vector<OptionErrors>();
    auto lists = Lists(cell.text);
    if (!lists) {
      return ProblemAt(cell.offset,
                       "the cell of error_sources is not one that Perseus wrote; expected numbers "
                       "such as 0.001 0.0008|0.004 0.003|0.0005; remove the column if you do not "
                       "know it");
    }
    auto& [time, power, blocking] = *lists;
    errors.push_back({.stage = row.stage,
                      .type = row.type,
                      .knob = row.knob,
                      .time_std = time.front(),
                      .power_std = power.front(),
                      .blocking_std = blocking.front(),
                      .time_sources = {time.begin() + 1, time.end()},
                      .power_sources = {power.begin() + 1, power.end()}});
  }
  std::sort(errors.begin(), errors.end(), [](const OptionErrors& a, const OptionErrors& b) {
    return std::tie(a.stage, a.type, a.knob) < std::tie(b.stage, b.type, b.knob);
  });
  return errors;
}

}  // namespace perseus::profile
