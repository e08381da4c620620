// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_ROWS_H_
#define PERSEUS_PROFILE_ROWS_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/csv_records.h"
#include "perseus/profile.h"

namespace perseus::profile {

// The columns of a profile that mean something.
enum class Column : std::size_t {
  kStage,
  kInstruction,
  kKnob,
  kTime,
  kEnergy,
  kTimeStd,
  kEnergyStd,
  kRank,
  kDpRank,
  kPpRank,
  kTpRank,
  kErrorSources,
};
inline constexpr std::size_t kNumColumns = 12;

// "stage", ...; "frequency" for kKnob.
std::string_view ColumnName(Column column);

// The position of each column in the rows of one profile.
class Columns {
 public:
  // From the header. Errors: a column missing, twice there, or misspelled.
  static Parsed<Columns> FromHeader(const CsvRecord& header);

  bool Has(Column column) const { return index_[static_cast<std::size_t>(column)] != kAbsent; }
  // Precondition: Has(column), and `record` has count() cells.
  const CsvCell& CellOf(const CsvRecord& record, Column column) const {
    return record.cells[index_[static_cast<std::size_t>(column)]];
  }
  // Cells of every row, those of unknown columns included.
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  Columns() { index_.fill(kAbsent); }
  Parsed<void> Add(const CsvRecord& header, std::size_t index);
  Parsed<void> RequireAll(const CsvRecord& header) const;

  std::array<std::size_t, kNumColumns> index_;
  std::size_t count_ = 0;
};

// Which GPU measured a row; -1 where the profile has no such column.
struct RankIdentity {
  int tp_rank = -1;
  int dp_rank = -1;
  int rank = -1;
  int pp_rank = -1;

  friend auto operator<=>(const RankIdentity&, const RankIdentity&) = default;
};

// The knob of rows that were measured at default clocks.
inline constexpr int kDefaultClockIndex = -1;

// One data row. `offset` is that of its record, for messages.
struct Row {
  std::uint32_t offset = 0;
  std::uint16_t stage = 0;
  ComputationType type = ComputationType::kForward;
  int knob = 0;
  RankIdentity rank;
  double time_seconds = 0;
  double energy_joules = 0;
  double time_std_seconds = 0;
  double energy_std_joules = 0;
};

// The instruction of rows that say what a GPU draws while it waits.
inline constexpr std::string_view kBlockingRow = "blocking";

// One of them.
struct BlockingRow {
  std::uint32_t offset = 0;
  int stage = -1;  // -1: all.
  int knob = 0;    // Index into Rows::blocking_knobs.
  RankIdentity rank;
  double watts = 0;  // Of one GPU.
};

// Every row of a text, each checked on its own.
struct Rows {
  Columns columns;
  std::vector<Row> rows;              // Of computations, in the order of the text.
  std::vector<BlockingRow> blocking;  // Likewise.
  std::vector<Row> default_clocks;    // Likewise; their knob is kDefaultClockIndex.
  // As the profile's.
  std::vector<Knob> knobs;
  std::string knob_unit;
  bool knobs_are_numbers = true;
  // All knobs, also those that only rows `blocking` have, in the same order.
  std::vector<Knob> blocking_knobs;
};

Parsed<Rows> ReadRows(std::string_view text);

// The offset of the cell of `column` in the record at `offset`.
std::size_t CellOffset(std::string_view text, const Columns& columns, std::size_t offset,
                       Column column);

// Among numbers, the cell of a row that was measured at default clocks. Among labels it is a label.
inline constexpr std::string_view kDefaultClockCell = "default";

// The knobs of a profile once all are known. The fields are the profile's.
struct KnobOrder {
  std::vector<Knob> knobs;
  std::string knob_unit;
  bool knobs_are_numbers = true;
  // [label, as KnobReader::Add numbered it] -> knobs; kDefaultClockIndex for kDefaultClockCell.
  std::vector<int> index_of;
};

// The fault of a clock that is in another unit than MHz, with a remedy; empty: none.
std::string ClockProblem(double megahertz);

// Collects the knobs of a profile row by row. Cells must outlive it.
class KnobReader {
 public:
  // The number of the cell's label, counted in order of appearance.
  Parsed<int> Add(const CsvCell& cell);

  // Decides whether knobs are numbers or labels, and sorts them. Errors: some
  // of both, numbers of several units, a number that is no speed. `text` is
  // that of the cells, for positions.
  Parsed<KnobOrder> Finish(std::string_view text) const;

 private:
  std::vector<CsvCell> labels_;                      // First appearances.
  std::unordered_map<std::string_view, int> index_;  // Never iterated.
};

// The cells of the column `error_sources`: "0.001 0.0008 -0.0002|0.004 0.003|0.0005". Three lists,
// of the time, the power and the blocking power: the standard error first, then the sources.
std::string FormatErrorSources(const OptionErrors& errors);

// Those of all rows. Empty where the profile has no such column, where a cell of it is empty, and
// where rows tell GPUs apart.
Parsed<std::vector<OptionErrors>> ReadErrorSources(std::string_view text, const Rows& rows);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_ROWS_H_
