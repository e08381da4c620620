// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_KNOBS_H_
#define PERSEUS_PROFILE_KNOBS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/csv_records.h"
#include "perseus/profile.h"

namespace perseus::profile {

// Among numbers, the cell of a row that was measured with no clock set. Among labels it is a label.
inline constexpr std::string_view kUnlockedCell = "unlocked";

// The knobs of a profile once all are known. The fields are the profile's.
struct KnobOrder {
  std::vector<Knob> knobs;
  std::string knob_unit;
  bool knobs_are_numbers = true;
  // [label, as KnobReader::Add numbered it] -> knobs; kUnlockedIndex for kUnlockedCell.
  std::vector<int> index_of;
};

// What is wrong with a clock that is in another unit than MHz, with a remedy; empty: nothing.
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

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_KNOBS_H_
