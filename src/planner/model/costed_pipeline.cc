// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/costed_pipeline.h"

#include <algorithm>

namespace perseus {
inline namespace v0 {

double EffectiveEnergy(const CostTable& table, const CostOption& option) {
  return option.energy_joules - table.blocking_power_watts * option.time_seconds;
}

std::optional<int> CostedPipeline::WaitingKnob(int rank) const {
  if (rank_waiting_watts.empty()) return std::nullopt;
  const std::vector<double>& watts = rank_waiting_watts[static_cast<std::size_t>(rank)];
  return static_cast<int>(std::min_element(watts.begin(), watts.end()) - watts.begin());
}

}  // namespace v0
}  // namespace perseus
