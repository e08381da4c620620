// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/bound/plan_bound.h"

#include <algorithm>
#include <cmath>

namespace perseus::plan {
namespace {

constexpr double kSameEnergy = 1e-11;

}  // namespace

double GapPercent(const CostedPipeline& pipeline, const Plan& plan, double bound_joules) {
  // Where energies cancel out, what is left is rounding.
  double magnitude = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  for (const CostOption& option : plan.options) magnitude += option.energy_joules;
  if (!(bound_joules > kSameEnergy * magnitude)) return 0;
  // The bound may be above the energy by rounding: a gap is none then, not -0.000 %.
  return std::max(0.0, 100 * (plan.energy_joules - bound_joules) / bound_joules);
}

std::optional<SharedKnobBound> SharedKnobBoundOf(const CostedPipeline& pipeline, const Plan& plan,
                                                 double effective_joules, bool proven_best) {
  if (!std::isfinite(effective_joules)) return std::nullopt;
  // Plans that take the realised time end by the requested one, so the bound
  // holds for them, and so does that of plans without shared knobs. The plan
  // itself is above both, but for rounding.
  const double waiting = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  SharedKnobBound bound;
  bound.lower_bound_joules =
      std::min(std::max(effective_joules + waiting, plan.lower_bound_joules), plan.energy_joules);
  bound.gap_percent = GapPercent(pipeline, plan, bound.lower_bound_joules);
  bound.proven_best = proven_best;
  return bound;
}

}  // namespace perseus::plan
