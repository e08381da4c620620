// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/realised.h"

#include <algorithm>
#include <set>
#include <vector>

#include "perseus/pipeline.h"
#include "plan/bound/plan_bound.h"
#include "plan/cost_options.h"
#include "plan/plan_search.h"

namespace perseus::plan {

void FillFigures(const CostedPipeline& pipeline, const Frontier& bound, double baseline_joules,
                 Plan* plan) {
  std::vector<double> durations;
  durations.reserve(plan->options.size());
  for (const CostOption& option : plan->options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);
  const double seconds = timing.iteration_time_seconds;
  plan->iteration_time_seconds = seconds;
  plan->energy_joules = IterationEnergy(pipeline, plan->options, plan->waiting, timing);
  const auto bound_at = [&bound](double at) {
    return bound.EnergyAt(at) * (1 - bound.certified_error);
  };
  plan->lower_bound_joules = bound_at(seconds);
  if (plan->lower_bound_joules > plan->energy_joules * (1 + kBoundRounding)) {
    // Where options of nearly the same time differ much in energy, the time's last bits are
    // worth that much. Without what the GPUs draw while they wait for them.
    const double later = seconds * (1 + kSameTime);
    const double waiting = pipeline.total_blocking_power_watts * (later - seconds);
    plan->lower_bound_joules = std::min(plan->lower_bound_joules, bound_at(later) - waiting);
  }
  plan->gap_percent = GapPercent(pipeline, *plan, plan->lower_bound_joules);
  plan->average_power_watts = seconds > 0 ? plan->energy_joules / seconds : 0;
  plan->knob_changes = CountKnobChanges(pipeline.dag, plan->options).value().within;
  std::set<int> knobs;
  for (const CostOption& option : plan->options) knobs.insert(option.knob);
  plan->distinct_knobs = static_cast<int>(knobs.size());
  plan->saving_percent =
      baseline_joules > 0 ? 100 * (baseline_joules - plan->energy_joules) / baseline_joules : 0;
}

}  // namespace perseus::plan
