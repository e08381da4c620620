// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/cost_options.h"

#include <algorithm>
#include <cstddef>

namespace perseus::plan {

double Guard::Seconds(const CostTable& table, const CostOption& option) const {
  if (option.knob == table.baseline.knob) return option.time_seconds;
  return option.time_seconds +
         std::max(sigmas * option.time_std_seconds, fraction * option.time_seconds);
}

Guard GuardOf(const PlanConstraints& constraints) {
  return {constraints.time_margin_sigmas, constraints.time_margin_fraction};
}

std::vector<CostOption> ParetoOptions(const CostTable& table, const Guard& guard) {
  std::vector<CostOption> options = table.all_options;
  std::stable_sort(options.begin(), options.end(), [&](const CostOption& a, const CostOption& b) {
    const double a_seconds = guard.Seconds(table, a);
    const double b_seconds = guard.Seconds(table, b);
    if (a_seconds != b_seconds) return a_seconds < b_seconds;
    return EffectiveEnergy(table, a) < EffectiveEnergy(table, b);
  });
  std::vector<CostOption> kept;
  for (const CostOption& option : options) {
    if (kept.empty() || EffectiveEnergy(table, option) < EffectiveEnergy(table, kept.back())) {
      kept.push_back(option);
    }
  }
  return kept;
}

double EffectiveEnergyOf(const CostedPipeline& costs, const std::vector<CostOption>& options) {
  double joules = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    joules += EffectiveEnergy(costs.TableOf(static_cast<int>(i)), options[i]);
  }
  return joules;
}

const CostOption* FindOption(const CostTable& table, int knob) {
  const auto option = std::lower_bound(table.all_options.begin(), table.all_options.end(), knob,
                                       [](const CostOption& o, int k) { return o.knob < k; });
  return option != table.all_options.end() && option->knob == knob ? &*option : nullptr;
}

}  // namespace perseus::plan
