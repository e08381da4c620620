// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_KNOBS_H_
#define PERSEUS_PROFILE_KNOBS_H_

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/csv_records.h"
#include "perseus/profile.h"

namespace perseus::profile {

// The knobs of a profile once all are known.
struct KnobOrder {
  std::vector<Knob> knobs;    // As Profile::knobs.
  std::vector<int> index_of;  // [label, as KnobReader::Add numbered it] -> knobs
  bool are_numbers = true;
};

// Collects the knobs of a profile row by row. Cells must outlive it.
class KnobReader {
 public:
  // The number of the cell's label, counted in order of appearance.
  Parsed<int> Add(const CsvCell& cell);

  // Decides whether knobs are numbers (all of them) or labels, and sorts them.
  Parsed<KnobOrder> Finish() const;

 private:
  std::vector<CsvCell> labels_;                      // First appearances.
  std::unordered_map<std::string_view, int> index_;  // Never iterated.
};

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_KNOBS_H_
