// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/nearest_options.h"

#include <cmath>
#include <cstddef>

namespace perseus::model {

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

}  // namespace perseus::model
