// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_ROWS_H_
#define PERSEUS_PROFILE_ROWS_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/csv_records.h"
#include "perseus/profile.h"
#include "profile/columns.h"

namespace perseus::profile {

// Which GPU measured a row; -1 where the profile has no such column.
struct RankIdentity {
  int tp_rank = -1;
  int dp_rank = -1;
  int rank = -1;
  int pp_rank = -1;

  friend auto operator<=>(const RankIdentity&, const RankIdentity&) = default;
};

// The knob of rows that were measured with no clock set.
inline constexpr int kUnlockedIndex = -1;

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
  std::vector<Row> unlocked;          // Likewise; their knob is kUnlockedIndex.
  // As the profile's.
  std::vector<Knob> knobs;
  std::string knob_unit;
  bool knobs_are_numbers = true;
  // All knobs, also those that only rows `blocking` have, in the same order.
  std::vector<Knob> blocking_knobs;
};

Parsed<Rows> ReadRows(std::string_view text);

// Where the cell of `column` in the record at `offset` stands.
std::size_t CellOffset(std::string_view text, const Columns& columns, std::size_t offset,
                       Column column);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_ROWS_H_
