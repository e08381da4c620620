// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_OPTION_TABLE_H_
#define PERSEUS_ROBUST_OPTION_TABLE_H_

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::robust {

// What every computation takes at every knob, where searches look it up.
class OptionTable {
 public:
  struct Option {
    double seconds = 0;
    double effective_joules = 0;
  };

  // The pipeline must outlive it. A knob that a table lacks counts as its nearest one.
  explicit OptionTable(const CostedPipeline& pipeline)
      : pipeline_(pipeline), num_knobs_(pipeline.knobs.size()) {
    options_.reserve(pipeline.tables.size() * num_knobs_);
    for (const CostTable& table : pipeline.tables) {
      for (int knob = 0; knob < static_cast<int>(num_knobs_); ++knob) {
        const CostOption* nearest = &table.all_options.front();
        for (const CostOption& option : table.all_options) {
          if (std::abs(option.knob - knob) < std::abs(nearest->knob - knob)) nearest = &option;
        }
        options_.push_back({nearest->time_seconds, EffectiveEnergy(table, *nearest)});
      }
    }
  }

  const Option& Of(int computation, int knob) const {
    return options_[static_cast<std::size_t>(pipeline_.table_of[computation]) * num_knobs_ + knob];
  }

 private:
  const CostedPipeline& pipeline_;
  std::size_t num_knobs_;
  std::vector<Option> options_;  // [table x knobs + knob]
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_OPTION_TABLE_H_
