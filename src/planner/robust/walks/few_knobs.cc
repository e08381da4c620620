// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/few_knobs.h"

#include <algorithm>
#include <limits>

#include "plan/cost_options.h"

namespace perseus::robust {
namespace {

// What a computation costs at its cheapest knob, and at its next one.
struct TwoCheapest {
  double cost = std::numeric_limits<double>::infinity();
  double next = std::numeric_limits<double>::infinity();
  int knob = -1;
  int next_knob = -1;
};

TwoCheapest TwoCheapestOf(const CostTable& table, double price, const std::vector<bool>& kept) {
  TwoCheapest two;
  for (const CostOption& option : table.all_options) {
    if (!kept[option.knob]) continue;
    const double cost = EffectiveEnergy(table, option) + price * option.time_seconds;
    if (cost < two.cost) {
      two = {cost, two.cost, option.knob, two.knob};
    } else if (cost < two.next) {
      two.next = cost;
      two.next_knob = option.knob;
    }
  }
  return two;
}

}  // namespace

std::vector<bool> UsedBy(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  std::vector<bool> used(pipeline.knobs.size(), false);
  for (const CostOption& option : options) used[option.knob] = true;
  return used;
}

std::vector<bool> CheapestFew(const CostedPipeline& pipeline, const std::vector<double>& price,
                              const std::vector<bool>& needed, int most) {
  const int knobs = static_cast<int>(pipeline.knobs.size());
  std::vector<bool> kept(knobs, true);
  std::vector<TwoCheapest> two(pipeline.dag.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    two[i] = TwoCheapestOf(pipeline.TableOf(i), price[i], kept);
  }
  std::vector<double> missed(knobs);  // What it costs to be without a knob.
  for (int count = knobs; count > most; --count) {
    std::fill(missed.begin(), missed.end(), 0.0);
    for (const TwoCheapest& each : two) missed[each.knob] += each.next - each.cost;
    int missed_least = -1;
    for (int knob = 0; knob < knobs; ++knob) {
      if (!kept[knob] || needed[knob]) continue;
      if (missed_least < 0 || missed[knob] < missed[missed_least]) missed_least = knob;
    }
    if (missed_least < 0) break;
    kept[missed_least] = false;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      if (two[i].knob != missed_least && two[i].next_knob != missed_least) continue;
      two[i] = TwoCheapestOf(pipeline.TableOf(i), price[i], kept);
    }
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
