// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/rows.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "common/cells.h"
#include "common/nearest_name.h"
#include "profile/knobs.h"

namespace perseus::profile {
namespace {

Parsed<ComputationType> ParseInstruction(const CsvCell& cell) {
  if (const auto type = ParseComputationType(cell.text)) return *type;
  std::vector<std::string> names(kComputationTypeNames.begin(), kComputationTypeNames.end());
  const std::string list = fmt::format("{} or {}", fmt::join(names, ", "), kBlockingRow);
  names.emplace_back(kBlockingRow);
  return ProblemAt(cell.offset, fmt::format("unknown instruction {}: expected {}{}",
                                            Shown(cell.text), list, NearestHint(cell.text, names)));
}

Parsed<void> CheckCellCount(const CsvRecord& record, const Columns& columns) {
  if (record.cells.size() == columns.count()) return {};
  const bool surplus = record.cells.size() > columns.count();
  return ProblemAt(
      surplus ? record.cells[columns.count()].offset : record.end,
      fmt::format("the row has {} cell{}, expected {} as in the header; {}", record.cells.size(),
                  record.cells.size() == 1 ? "" : "s", columns.count(),
                  surplus ? "put a cell that holds a comma in quotes" : "add what is missing"));
}

// Reads the cells of one row; remembers its first problem, so that a row is
// read by plain assignments.
class RowReader {
 public:
  RowReader(const CsvRecord& record, const Columns& columns) : record_(record), columns_(columns) {}

  template <typename T, typename Parse>
  T Read(Column column, T absent, Parse parse) {
    if (problem_.has_value() || !columns_.Has(column)) return absent;
    Parsed<T> value = parse(columns_.CellOf(record_, column));
    if (value) return *value;
    problem_ = std::move(value.error());
    return absent;
  }

  double ReadTime() {
    return Read<double>(Column::kTime, 0.0, [](const CsvCell& cell) {
      return ParseQuantity(cell, "time", Minimum::kAboveZero);
    });
  }

  double ReadEnergy() {
    return Read<double>(Column::kEnergy, 0.0, [](const CsvCell& cell) {
      return ParseQuantity(cell, "energy", Minimum::kZero);
    });
  }

  void ReadRanks(RankIdentity* id) {
    id->rank = ReadRank(Column::kRank);
    id->dp_rank = ReadRank(Column::kDpRank);
    id->pp_rank = ReadRank(Column::kPpRank);
    id->tp_rank = ReadRank(Column::kTpRank);
  }

  double ReadSpread(Column column) {
    return Read<double>(column, 0.0, [&](const CsvCell& cell) -> Parsed<double> {
      if (cell.text.empty()) return 0.0;  // Not measured.
      return ParseQuantity(cell, ColumnName(column), Minimum::kZero);
    });
  }

  const std::optional<TextProblem>& problem() const { return problem_; }

 private:
  static constexpr int kHighestRank = 16'777'215;

  int ReadRank(Column column) {
    return Read<int>(column, -1, [&](const CsvCell& cell) {
      return ParseIndex(cell, ColumnName(column), kHighestRank);
    });
  }

  const CsvRecord& record_;
  const Columns& columns_;
  std::optional<TextProblem> problem_;
};

constexpr int kHighestStage = 65'535;

bool IsBlocking(const CsvRecord& record, const Columns& columns) {
  return columns.CellOf(record, Column::kInstruction).text == kBlockingRow;
}

Parsed<BlockingRow> ReadBlockingRow(const CsvRecord& record, const Columns& columns,
                                    KnobReader* knobs) {
  RowReader reader(record, columns);
  BlockingRow row;
  row.offset = static_cast<std::uint32_t>(record.offset);
  row.stage = reader.Read<int>(Column::kStage, -1, [](const CsvCell& cell) -> Parsed<int> {
    return cell.text.empty() ? -1 : ParseIndex(cell, "stage", kHighestStage);
  });
  row.knob =
      reader.Read<int>(Column::kKnob, 0, [&](const CsvCell& cell) { return knobs->Add(cell); });
  const double seconds = reader.ReadTime();
  row.watts = reader.ReadEnergy() / seconds;
  reader.ReadRanks(&row.rank);
  if (reader.problem()) return tl::unexpected(*reader.problem());
  if (std::isfinite(row.watts)) return row;
  return ProblemAt(columns.CellOf(record, Column::kEnergy).offset,
                   "the energy over the time is a power too large to state; check the units "
                   "(seconds, joules)");
}

Parsed<Row> ReadRow(const CsvRecord& record, const Columns& columns, KnobReader* knobs) {
  RowReader reader(record, columns);
  Row row;
  row.offset = static_cast<std::uint32_t>(record.offset);
  // First of all: only a known one says what its stage may be.
  row.type = reader.Read<ComputationType>(Column::kInstruction, ComputationType::kForward,
                                          ParseInstruction);
  row.stage =
      static_cast<std::uint16_t>(reader.Read<int>(Column::kStage, 0, [](const CsvCell& cell) {
        return ParseIndex(cell, "stage", kHighestStage);
      }));
  row.knob =
      reader.Read<int>(Column::kKnob, 0, [&](const CsvCell& cell) { return knobs->Add(cell); });
  row.time_seconds = reader.ReadTime();
  row.energy_joules = reader.ReadEnergy();
  row.time_std_seconds = reader.ReadSpread(Column::kTimeStd);
  row.energy_std_joules = reader.ReadSpread(Column::kEnergyStd);
  reader.ReadRanks(&row.rank);
  if (reader.problem()) return tl::unexpected(*reader.problem());
  return row;
}

}  // namespace

Parsed<Rows> ReadRows(std::string_view text) {
  CsvRecords records(text);
  CsvRecord record;
  Parsed<bool> more = records.Next(&record);
  if (!more) return tl::unexpected(more.error());
  if (!*more) {
    return ProblemAt(text.size(),
                     "the profile is empty; expected a header "
                     "(stage,instruction,frequency,time,energy) and a row for each "
                     "measurement");
  }
  const auto columns = Columns::FromHeader(record);
  if (!columns) return tl::unexpected(columns.error());

  Rows result{*columns, {}, {}, {}, {}, {}, true, {}};
  KnobReader knobs;
  while (true) {
    more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (auto counted = CheckCellCount(record, *columns); !counted) {
      return tl::unexpected(counted.error());
    }
    if (IsBlocking(record, *columns)) {
      const auto row = ReadBlockingRow(record, *columns, &knobs);
      if (!row) return tl::unexpected(row.error());
      result.blocking.push_back(*row);
      continue;
    }
    const auto row = ReadRow(record, *columns, &knobs);
    if (!row) return tl::unexpected(row.error());
    result.rows.push_back(*row);
  }
  if (result.rows.empty()) {
    return ProblemAt(text.size(),
                     result.blocking.empty()
                         ? "the profile has a header but no rows; expected one for each measurement"
                         : "the profile has rows of blocking alone; expected one for each "
                           "measurement of a computation, too");
  }
  auto order = knobs.Finish(text);
  if (!order) return tl::unexpected(order.error());
  for (BlockingRow& row : result.blocking) {
    row.knob = order->index_of[static_cast<std::size_t>(row.knob)];
    if (row.knob != kUnlockedIndex) continue;
    return ProblemAt(
        CellOffset(text, *columns, row.offset, Column::kKnob),
        fmt::format(
            "a row of '{}' cannot be '{}': with no clock set a GPU is taken to wait as at the "
            "highest clock; remove this row, or write the clock at which the GPU waited",
            kBlockingRow, kUnlockedCell));
  }
  // What no computation was measured at is no knob of the profile.
  std::vector<int> kept(order->knobs.size(), -1);
  std::vector<Row> read = std::exchange(result.rows, {});
  result.rows.reserve(read.size());
  for (Row& row : read) {
    row.knob = order->index_of[static_cast<std::size_t>(row.knob)];
    (row.knob == kUnlockedIndex ? result.unlocked : result.rows).push_back(row);
    if (row.knob != kUnlockedIndex) kept[static_cast<std::size_t>(row.knob)] = 0;
  }
  if (result.rows.empty()) {
    return ProblemAt(text.size(),
                     "all computations were measured with no clock set (unlocked); expected rows "
                     "with clocks, too");
  }
  result.knobs.reserve(order->knobs.size());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (kept[k] < 0) continue;
    kept[k] = static_cast<int>(result.knobs.size());
    result.knobs.push_back(order->knobs[k]);
  }
  for (Row& row : result.rows) row.knob = kept[static_cast<std::size_t>(row.knob)];
  if (!result.blocking.empty()) result.blocking_knobs = std::move(order->knobs);
  result.knob_unit = std::move(order->knob_unit);
  result.knobs_are_numbers = order->knobs_are_numbers;
  return result;
}

std::size_t CellOffset(std::string_view text, const Columns& columns, std::size_t offset,
                       Column column) {
  CsvRecords records(text, offset);
  CsvRecord record;
  const Parsed<bool> found = records.Next(&record);
  return found && *found && columns.Has(column) ? columns.CellOf(record, column).offset : offset;
}

}  // namespace perseus::profile
