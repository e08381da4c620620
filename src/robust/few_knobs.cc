// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/few_knobs.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "plan/cost_options.h"

namespace perseus::robust {

std::vector<bool> UsedBy(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  std::vector<bool> used(pipeline.knobs.size(), false);
  for (const CostOption& option : options) used[option.knob] = true;
  return used;
}

std::vector<bool> CheapestFew(const CostedPipeline& pipeline, const std::vector<double>& price,
                              const std::vector<bool>& needed, int most) {
  std::vector<bool> kept(pipeline.knobs.size(), true);
  const auto cost_of = [&](const std::vector<bool>& with) {
    double sum = 0;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const CostTable& table = pipeline.TableOf(i);
      double least = std::numeric_limits<double>::infinity();
      for (const CostOption& option : table.all_options) {
        if (!with[option.knob]) continue;
        least = std::min(least, EffectiveEnergy(table, option) + price[i] * option.time_seconds);
      }
      sum += least;
    }
    return sum;
  };
  for (auto count = std::count(kept.begin(), kept.end(), true); count > most; --count) {
    int missed_least = -1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t knob = 0; knob < kept.size(); ++knob) {
      if (!kept[knob] || needed[knob]) continue;
      kept[knob] = false;
      const double cost = cost_of(kept);
      kept[knob] = true;
      if (missed_least >= 0 && cost >= least) continue;
      least = cost;
      missed_least = static_cast<int>(knob);
    }
    if (missed_least < 0) break;
    kept[missed_least] = false;
  }
  return kept;
}

CostedPipeline WithKnobs(const CostedPipeline& pipeline, const std::vector<bool>& knobs) {
  CostedPipeline few = pipeline;
  for (CostTable& table : few.tables) {
    std::erase_if(table.all_options, [&](const CostOption& option) { return !knobs[option.knob]; });
    table.options = plan::ParetoOptions(table, {});
  }
  return few;
}

}  // namespace perseus::robust
