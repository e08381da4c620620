// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/knob_counts.h"

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

namespace perseus::formats {

KnobCounts CountKnobs(const PlanDocument& plan) {
  KnobCounts counts;
  std::set<std::string_view> distinct;
  for (const PlannedRank& rank : plan.ranks) {
    const std::vector<PlannedComputation>& run = rank.computations;
    for (std::size_t k = 0; k < run.size(); ++k) {
      const bool changes = k > 0 && run[k].knob.label != run[k - 1].knob.label;
      if (changes) ++counts.changes.within;
      if (k == 0 || changes) distinct.insert(run[k].knob.label);
    }
    if (!run.empty() && run.front().knob.label != run.back().knob.label) ++counts.changes.back;
  }
  counts.figures.knob_changes = counts.changes.within;
  counts.figures.distinct_knobs = static_cast<int>(distinct.size());
  return counts;
}

}  // namespace perseus::formats
