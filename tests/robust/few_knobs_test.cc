// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/few_knobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "robust/robust_testing.h"

namespace perseus::robust {
namespace {

double LeastCost(const CostedPipeline& pipeline, const std::vector<double>& price,
                 const std::vector<bool>& with) {
  double sum = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostTable& table = pipeline.TableOf(i);
    double least = 1e300;
    for (const CostOption& option : table.all_options) {
      if (!with[option.knob]) continue;
      least = std::min(least, EffectiveEnergy(table, option) + price[i] * option.time_seconds);
    }
    sum += least;
  }
  return sum;
}

// By trying what it costs to be without each knob.
std::vector<bool> PlainCheapestFew(const CostedPipeline& pipeline, const std::vector<double>& price,
                                   const std::vector<bool>& needed, int most) {
  std::vector<bool> kept(pipeline.knobs.size(), true);
  while (std::count(kept.begin(), kept.end(), true) > most) {
    int missed_least = -1;
    double least = 1e300;
    for (std::size_t knob = 0; knob < kept.size(); ++knob) {
      if (!kept[knob] || needed[knob]) continue;
      std::vector<bool> without = kept;
      without[knob] = false;
      const double cost = LeastCost(pipeline, price, without);
      if (missed_least >= 0 && cost >= least) continue;
      least = cost;
      missed_least = static_cast<int>(knob);
    }
    if (missed_least < 0) break;
    kept[missed_least] = false;
  }
  return kept;
}

TEST(FewKnobsTest, DropsWhatIsMissedLeast) {
  std::mt19937 random(61);
  std::uniform_real_distribution<double> share(0, 1);
  for (int run = 0; run < 40; ++run) {
    const Planner planner =
        robust_testing::RandomPlanner(random, 2 + run % 3, 2 + run % 4, 3 + run % 12);
    const CostedPipeline& pipeline = planner.pipeline();
    const double watts =
        planner.baseline().energy_joules / planner.baseline().iteration_time_seconds;
    std::vector<double> price;
    for (int i = 0; i < pipeline.dag.size(); ++i) price.push_back(2 * watts * share(random));
    const std::vector<bool> needed = UsedBy(pipeline, planner.baseline().options);
    for (int most = 1; most <= static_cast<int>(pipeline.knobs.size()); ++most) {
      const std::vector<bool> few = CheapestFew(pipeline, price, needed, most);
      EXPECT_EQ(few, PlainCheapestFew(pipeline, price, needed, most)) << run << ", " << most;
      EXPECT_EQ(std::count(few.begin(), few.end(), true),
                std::max<std::ptrdiff_t>(most, std::count(needed.begin(), needed.end(), true)));
    }
  }
}

}  // namespace
}  // namespace perseus::robust
