// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "robust/bounds.h"
#include "robust/robust_testing.h"

namespace perseus::robust {
namespace {

using robust_testing::CostOf;
using robust_testing::RandomPlanner;

TEST(PricePathTest, IsTheCheapestOfAll) {
  std::mt19937 random(1);
  for (int run = 0; run < 10; ++run) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    const CostedPipeline& pipeline = planner.pipeline();
    std::vector<double> price;
    for (int i = 0; i < pipeline.dag.size(); ++i) price.push_back(random() % 200);
    const double change_joules = static_cast<double>(random() % 20);
    double least = 1e300;
    std::vector<int> knobs(pipeline.dag.size(), 0);
    for (int code = 0; code < 6561; ++code) {  // 3 to the power of 8.
      for (int i = 0, rest = code; i < 8; ++i, rest /= 3) knobs[i] = rest % 3;
      least = std::min(least, CostOf(pipeline, knobs, price, change_joules));
    }
    const auto found = CheapestKnobs(pipeline, price, change_joules);
    EXPECT_NEAR(CostOf(pipeline, found, price, change_joules), least, 1e-9);
  }
}

TEST(PricePathTest, KeepsTheLimitOnChanges) {
  std::mt19937 random(2);
  const Planner planner = RandomPlanner(random, 3, 8, 5);
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<double> price;
  for (int i = 0; i < pipeline.dag.size(); ++i) price.push_back(random() % 200);
  const int free = CountChanges(pipeline.dag, CheapestKnobs(pipeline, price, 0));
  ASSERT_GT(free, 10);
  for (const int most : {0, 3, 6, 10, free, 1000}) {
    const auto knobs = CheapestKnobsWithin(pipeline, price, most);
    EXPECT_LE(CountChanges(pipeline.dag, knobs), most);
    if (most >= free) {
      EXPECT_EQ(knobs, CheapestKnobs(pipeline, price, 0));
    }
  }
}

}  // namespace
}  // namespace perseus::robust
