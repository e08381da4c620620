// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/price_path.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace perseus::robust {

int CountChanges(const PipelineDag& dag, std::span<const int> knobs) {
  int changes = 0;
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (knobs[order[k]] != knobs[order[k == 0 ? order.size() - 1 : k - 1]]) ++changes;
    }
  }
  return changes;
}

std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules) {
  return CheapestKnobs(pipeline, price, std::vector<double>(pipeline.dag.size(), change_joules));
}

std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               std::span<const double> change_joules) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::size_t knobs = pipeline.knobs.size();
  std::vector<int> chosen(pipeline.dag.size(), 0);
  std::vector<char> stays;
  std::vector<int> best_before;
  std::vector<double> next;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    std::vector<double> least(knobs, 0.0);
    stays.assign(order.size() * knobs, 1);
    best_before.assign(order.size(), 0);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto cheapest = std::min_element(least.begin(), least.end());
      best_before[k] = static_cast<int>(cheapest - least.begin());
      const double after_change = *cheapest + (k == 0 ? 0 : change_joules[order[k]]);
      next.assign(knobs, kInfinite);
      const CostTable& table = pipeline.TableOf(order[k]);
      for (const CostOption& option : table.all_options) {
        const auto knob = static_cast<std::size_t>(option.knob);
        const bool changes = least[knob] > after_change;
        if (changes) stays[k * knobs + knob] = 0;
        next[knob] = (changes ? after_change : least[knob]) + EffectiveEnergy(table, option) +
                     price[order[k]] * option.time_seconds;
      }
      std::swap(least, next);
    }
    int at = static_cast<int>(std::min_element(least.begin(), least.end()) - least.begin());
    for (std::size_t k = order.size(); k-- > 0;) {
      chosen[order[k]] = at;
      if (stays[k * knobs + at] == 0) at = best_before[k];
    }
  }
  return chosen;
}

std::vector<int> CheapestKnobsWithin(const CostedPipeline& pipeline, std::span<const double> price,
                                     int most_changes) {
  constexpr int kHalvings = 24;
  std::vector<int> best = CheapestKnobs(pipeline, price, 0);
  if (CountChanges(pipeline.dag, best) <= most_changes) return best;
  double high = 0;  // More than any change is worth.
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostTable& table = pipeline.TableOf(i);
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const CostOption& option : table.all_options) {
      const double costs = EffectiveEnergy(table, option) + price[i] * option.time_seconds;
      least = std::min(least, costs);
      most = std::max(most, costs);
    }
    high += most - least;
  }
  best = CheapestKnobs(pipeline, price, high);
  double low = 0;
  for (int k = 0; k < kHalvings; ++k) {
    // By factors, until the scale is known.
    const double middle = low == 0 ? high / 8 : (low + high) / 2;
    std::vector<int> knobs = CheapestKnobs(pipeline, price, middle);
    if (CountChanges(pipeline.dag, knobs) <= most_changes) {
      high = middle;
      best = std::move(knobs);
    } else {
      low = middle;
    }
  }
  return best;
}

}  // namespace perseus::robust
