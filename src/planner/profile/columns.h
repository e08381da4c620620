// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_COLUMNS_H_
#define PERSEUS_PROFILE_COLUMNS_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "common/csv_records.h"

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

// Where each column stands in the rows of one profile.
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

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_COLUMNS_H_
