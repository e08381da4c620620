// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/power_limits.h"

#include <algorithm>

namespace perseus {
inline namespace v0 {
namespace {

bool SameKnobs(const Plan& one, const Plan& other) {
  return std::equal(one.options.begin(), one.options.end(), other.options.begin(),
                    other.options.end(),
                    [](const CostOption& a, const CostOption& b) { return a.knob == b.knob; });
}

}  // namespace

LimitVerdict PowerLimits::Verdict(const PowerShape& shape) const {
  const bool has_ramp = shape.stated() && shape.ramp_1s;
  const bool has_band = shape.stated() && shape.band_resolved;
  if ((ramp_watts_per_second && has_ramp && !(shape.ramp_1s->most() <= *ramp_watts_per_second)) ||
      (band_rms_watts && has_band && !(shape.band_rms_watts <= *band_rms_watts))) {
    return LimitVerdict::kBroken;
  }
  const bool says_all = (!ramp_watts_per_second || has_ramp) && (!band_rms_watts || has_band);
  return says_all ? LimitVerdict::kKept : LimitVerdict::kNotResolved;
}

bool PowerLimits::KeptBy(const PowerShape& shape) const {
  return Verdict(shape) == LimitVerdict::kKept;
}

Result<std::vector<SlowerRun>> SlowDownToLimits(const Planner& planner, const Policy& policy,
                                                const EmulationSpec& spec,
                                                const PowerLimits& limits,
                                                const ProgressFunction& progress) {
  constexpr double kLongest = 1.5;
  // What it has for the longest time it has for all between.
  bool has_slower = true;
  if (!policy.reacts()) {
    const Result<Plan> own = policy.PlanFor(spec.target_seconds);
    const Result<Plan> slowest = policy.PlanFor(kLongest * spec.target_seconds);
    has_slower = !own || !slowest || !SameKnobs(*own, *slowest);
  }
  std::vector<SlowerRun> runs;
  for (const double factor : {1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, kLongest}) {
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
    if (limits.Verdict(emulation->power_shape) != LimitVerdict::kBroken || !has_slower) break;
  }
  return runs;
}

}  // namespace v0
}  // namespace perseus
