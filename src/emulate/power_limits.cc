// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/power_limits.h"

namespace perseus {

bool PowerLimits::KeptBy(const PowerShape& shape) const {
  if (!shape.stated()) return false;
  if (ramp_watts_per_second &&
      !(shape.ramp_1s && shape.ramp_1s->most() <= *ramp_watts_per_second)) {
    return false;
  }
  return !band_rms_watts || shape.band_rms_watts <= *band_rms_watts;
}

Result<std::vector<SlowerRun>> SlowDownToLimits(const Planner& planner, const Policy& policy,
                                                const EmulationSpec& spec,
                                                const PowerLimits& limits,
                                                const ProgressFunction& progress) {
  std::vector<SlowerRun> runs;
  for (const double factor : {1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5}) {
    EmulationSpec slower = spec;
    slower.target_seconds = factor * spec.target_seconds;
    const Result<Emulation> emulation = Emulate(planner, policy, slower, progress);
    if (!emulation) {
      if (factor > 1 && emulation.error().code == ErrorCode::kInfeasible) continue;
      return tl::unexpected(emulation.error());
    }
    runs.push_back({.target_seconds = slower.target_seconds,
                    .time_seconds = emulation->time_seconds,
                    .energy_joules = emulation->energy.total_joules(),
                    .shape = emulation->power_shape,
                    .keeps = limits.KeptBy(emulation->power_shape)});
    if (runs.back().keeps || !runs.back().shape.stated()) break;
  }
  return runs;
}

}  // namespace perseus
