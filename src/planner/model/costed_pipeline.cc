// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/costed_pipeline.h"

namespace perseus {
inline namespace v0 {

double EffectiveEnergy(const CostTable& table, const CostOption& option) {
  return option.energy_joules - table.blocking_power_watts * option.time_seconds;
}

}  // namespace v0
}  // namespace perseus
