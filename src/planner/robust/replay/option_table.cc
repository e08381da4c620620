// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/option_table.h"

#include "model/nearest_options.h"
#include "model/option_errors.h"

namespace perseus::robust {

OptionTable::OptionTable(const CostedPipeline& pipeline)
    : pipeline_(pipeline), num_knobs_(pipeline.knobs.size()) {
  cells_.reserve(pipeline.tables.size() * num_knobs_);
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption* option : model::NearestOptions(pipeline, table)) {
      const CostOption& taken = option != nullptr ? *option : table.all_options.front();
      cells_.push_back(
          {{taken.time_seconds, EffectiveEnergy(table, taken)}, /*counts=*/option != nullptr});
      as_measured_.push_back(
          {taken.time_seconds, model::TimeErrorBesideBaseline(pipeline, table, taken.knob)});
    }
  }
}

void OptionTable::SetGuard(double errors) {
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    const Measured& measured = as_measured_[cell];
    cells_[cell].option.seconds = measured.seconds * (1 + errors * measured.error);
  }
}

}  // namespace perseus::robust
