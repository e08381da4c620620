// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/bounds/price_path.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace perseus::robust {

std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules) {
  return CheapestKnobs(pipeline, price, std::vector<double>(pipeline.dag.size(), change_joules));
}

std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               std::span<const double> change_joules) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::size_t knobs = pipeline.knobs.size();
  // [table x knobs + knob], so that the loop below has no branches.
  std::vector<double> joules(pipeline.tables.size() * knobs, kInfinite);
  std::vector<double> seconds(pipeline.tables.size() * knobs, 0.0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    for (const CostOption& option : pipeline.tables[t].all_options) {
      joules[t * knobs + option.knob] = EffectiveEnergy(pipeline.tables[t], option);
      seconds[t * knobs + option.knob] = option.time_seconds;
    }
  }
  std::vector<int> chosen(pipeline.dag.size(), 0);
  std::vector<double> change;
  std::vector<double> least;  // [position x knobs + knob]: before the computation.
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    least.assign((order.size() + 1) * knobs, 0.0);
    change.assign(order.size(), kInfinite);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const double* const now = least.data() + k * knobs;
      double* const next = least.data() + (k + 1) * knobs;
      const double* const of_joules = joules.data() + pipeline.table_of[order[k]] * knobs;
      const double* const of_seconds = seconds.data() + pipeline.table_of[order[k]] * knobs;
      const double of_time = price[order[k]];
      double cheapest = kInfinite;
      for (std::size_t knob = 0; knob < knobs; ++knob) {
        cheapest = now[knob] < cheapest ? now[knob] : cheapest;
      }
      change[k] = cheapest + (k == 0 ? 0 : change_joules[order[k]]);
      for (std::size_t knob = 0; knob < knobs; ++knob) {
        const double from = change[k] < now[knob] ? change[k] : now[knob];
        next[knob] = from + of_joules[knob] + of_time * of_seconds[knob];
      }
    }
    const auto first_least = [&](std::size_t k) {
      const auto begin = least.begin() + static_cast<std::ptrdiff_t>(k * knobs);
      return static_cast<int>(std::min_element(begin, begin + static_cast<std::ptrdiff_t>(knobs)) -
                              begin);
    };
    int at = first_least(order.size());
    for (std::size_t k = order.size(); k-- > 0;) {
      chosen[order[k]] = at;
      if (least[k * knobs + at] > change[k]) at = first_least(k);
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
