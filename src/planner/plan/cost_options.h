// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_COST_OPTIONS_H_
#define PERSEUS_PLAN_COST_OPTIONS_H_

#include <vector>

#include "model/iteration_energy.h"
#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::plan {

// The safety margin of PlanConstraints.
struct Guard {
  double sigmas = 0;
  double fraction = 0;

  bool any() const { return sigmas > 0 || fraction > 0; }
  // The time that a plan has to reckon with. The all-maximum-clock option keeps its own: the
  // iteration is compared with it.
  double Seconds(const CostTable& table, const CostOption& option) const;
};
Guard GuardOf(const PlanConstraints& constraints);

// The options of table.all_options that are Pareto-optimal in (guarded time,
// effective energy), fastest first; of equal ones the lowest knob.
std::vector<CostOption> ParetoOptions(const CostTable& table, const Guard& guard);

// Sum over one option for every computation: what plans are compared by, since
// over iterations of one length the rest of the energy is the same.
double EffectiveEnergyOf(const CostedPipeline& costs, const std::vector<CostOption>& options);

using model::IterationEnergy;

// The option of table.all_options at a knob, or nullptr. Lives as long as the
// table.
const CostOption* FindOption(const CostTable& table, int knob);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_COST_OPTIONS_H_
