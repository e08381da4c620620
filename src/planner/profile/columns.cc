// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/nearest_name.h"

namespace perseus::profile {
namespace {

struct NamedColumn {
  std::string_view name;
  Column column;
};

constexpr std::array<NamedColumn, kNumColumns + 1> kNames = {{
    {"stage", Column::kStage},
    {"instruction", Column::kInstruction},
    {"frequency", Column::kKnob},
    {"knob", Column::kKnob},
    {"time", Column::kTime},
    {"energy", Column::kEnergy},
    {"time_std", Column::kTimeStd},
    {"energy_std", Column::kEnergyStd},
    {"rank", Column::kRank},
    {"dp_rank", Column::kDpRank},
    {"pp_rank", Column::kPpRank},
    {"tp_rank", Column::kTpRank},
    {"error_sources", Column::kErrorSources},
}};

constexpr std::array<Column, 5> kRequired = {Column::kStage, Column::kInstruction, Column::kKnob,
                                             Column::kTime, Column::kEnergy};

// Whether one letter too many, too few, wrong or swapped with the next turns
// `name` into `given`. Ranks of other kinds of parallelism (ep_rank, cp_rank)
// are names of their own.
bool IsMisspelling(std::string_view given, std::string_view name) {
  if (SameName(given, name)) return true;
  if (given.ends_with("_rank")) return false;
  while (!given.empty() && !name.empty() && given.front() == name.front()) {
    given.remove_prefix(1);
    name.remove_prefix(1);
  }
  while (!given.empty() && !name.empty() && given.back() == name.back()) {
    given.remove_suffix(1);
    name.remove_suffix(1);
  }
  if (given.size() <= 1 && name.size() <= 1) return true;
  return given.size() == 2 && name.size() == 2 && given[0] == name[1] && given[1] == name[0];
}

std::string FoundColumns(const CsvRecord& header) {
  constexpr std::size_t kMostListed = 8;
  std::string found;
  for (std::size_t i = 0; i < header.cells.size() && i < kMostListed; ++i) {
    found += (i == 0 ? "" : ", ") + Shown(header.cells[i].text);
  }
  return found + (header.cells.size() > kMostListed ? ", ..." : "");
}

// Why the header may hold none of our columns.
std::string SeparatorHint(const CsvRecord& header) {
  if (header.cells.size() > 1) return "";
  const std::string_view line = header.cells.front().text;
  if (line.find(';') != std::string_view::npos) return "; separate cells by commas, not semicolons";
  if (line.find('\t') != std::string_view::npos) return "; separate cells by commas, not tabs";
  return "";
}

}  // namespace

std::string_view ColumnName(Column column) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const NamedColumn& named) { return named.column == column; })
      ->name;
}

Parsed<Columns> Columns::FromHeader(const CsvRecord& header) {
  Columns columns;
  columns.count_ = header.cells.size();
  for (std::size_t i = 0; i < header.cells.size(); ++i) {
    if (auto added = columns.Add(header, i); !added) return tl::unexpected(added.error());
  }
  if (auto all = columns.RequireAll(header); !all) return tl::unexpected(all.error());
  return columns;
}

Parsed<void> Columns::Add(const CsvRecord& header, std::size_t index) {
  const CsvCell& cell = header.cells[index];
  for (const NamedColumn& known : kNames) {
    if (cell.text != known.name) continue;
    std::size_t& place = index_[static_cast<std::size_t>(known.column)];
    if (place != kAbsent) {
      return ProblemAt(cell.offset,
                       cell.text == header.cells[place].text
                           ? fmt::format("column '{}' is there twice; remove one", cell.text)
                           : fmt::format("columns '{}' and '{}' mean the same; remove one",
                                         header.cells[place].text, cell.text));
    }
    place = index;
    return {};
  }
  for (const NamedColumn& known : kNames) {
    if (!IsMisspelling(cell.text, known.name)) continue;
    return ProblemAt(cell.offset, fmt::format("unknown column {}; did you mean '{}'?",
                                              Shown(cell.text), known.name));
  }
  return {};  // A column of the user's own.
}

Parsed<void> Columns::RequireAll(const CsvRecord& header) const {
  for (const Column column : kRequired) {
    if (Has(column)) continue;
    return ProblemAt(
        header.cells.front().offset,
        fmt::format("the header has no column '{}'{}; expected stage,instruction,frequency,time,"
                    "energy in any order, found {}{}",
                    ColumnName(column), column == Column::kKnob ? " (or 'knob')" : "",
                    FoundColumns(header), SeparatorHint(header)));
  }
  return {};
}

}  // namespace perseus::profile
