// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/option_table.h"

#include <cmath>

namespace perseus::robust {

std::vector<const CostOption*> NearestOptions(const CostedPipeline& pipeline,
                                              const CostTable& table) {
  std::vector<const CostOption*> nearest(pipeline.knobs.size(), nullptr);
  for (const CostOption& option : table.all_options) nearest[option.knob] = &option;
  if (!pipeline.knobs_are_numbers) return nearest;
  const std::vector<const CostOption*> own = nearest;
  for (std::size_t knob = 0; knob < nearest.size(); ++knob) {
    if (own[knob] != nullptr) continue;
    double least = 0;
    for (const CostOption& option : table.all_options) {
      const double away =
          std::abs(pipeline.knobs[option.knob].number - pipeline.knobs[knob].number);
      const bool lower = nearest[knob] != nullptr && pipeline.knobs[option.knob].number <
                                                         pipeline.knobs[nearest[knob]->knob].number;
      if (nearest[knob] == nullptr || away < least || (away == least && lower)) {
        nearest[knob] = &option;
        least = away;
      }
    }
  }
  return nearest;
}

OptionTable::OptionTable(const CostedPipeline& pipeline)
    : pipeline_(pipeline), num_knobs_(pipeline.knobs.size()) {
  cells_.reserve(pipeline.tables.size() * num_knobs_);
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption* option : NearestOptions(pipeline, table)) {
      const CostOption& taken = option != nullptr ? *option : table.all_options.front();
      cells_.push_back(
          {{taken.time_seconds, EffectiveEnergy(table, taken)}, /*counts=*/option != nullptr});
    }
  }
}

}  // namespace perseus::robust
