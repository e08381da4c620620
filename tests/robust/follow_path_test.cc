// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "robust/bounds.h"
#include "robust/paths.h"
#include "robust/robust_testing.h"

namespace perseus::robust {
namespace {

using robust_testing::CostOf;
using robust_testing::OptionsAt;
using robust_testing::RandomPlanner;

Lead RandomLead(const CostedPipeline& pipeline, std::mt19937& random, std::vector<int>* knobs) {
  Lead lead;
  knobs->clear();
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const auto& all = pipeline.TableOf(i).all_options;
    const CostOption& option = all[random() % all.size()];
    knobs->push_back(option.knob);
    lead.seconds.push_back(option.time_seconds);
    lead.price.push_back(random() % 200);
  }
  return lead;
}

TEST(FollowPathTest, WithoutStiffnessIsThePricePath) {
  std::mt19937 random(3);
  for (int run = 0; run < 10; ++run) {
    const Planner planner = RandomPlanner(random, 3, 6, 5);
    const CostedPipeline& pipeline = planner.pipeline();
    std::vector<int> unused;
    const Lead lead = RandomLead(pipeline, random, &unused);
    const double change_joules = static_cast<double>(random() % 20);
    const auto found = KnobsAlong(pipeline, lead, change_joules, 0);
    const auto cheapest = CheapestKnobs(pipeline, lead.price, change_joules);
    EXPECT_NEAR(CostOf(pipeline, found, lead.price, change_joules),
                CostOf(pipeline, cheapest, lead.price, change_joules), 1e-6);
  }
}

TEST(FollowPathTest, KeepsToALeadThatClocksCanKeep) {
  std::mt19937 random(5);
  for (int run = 0; run < 10; ++run) {
    const Planner planner = RandomPlanner(random, 3, 6, 5);
    const CostedPipeline& pipeline = planner.pipeline();
    std::vector<int> knobs;
    const Lead lead = RandomLead(pipeline, random, &knobs);
    const auto options = OptionsAt(pipeline, KnobsAlong(pipeline, lead, 1, 1e9));
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      EXPECT_NEAR(options[i].time_seconds, lead.seconds[i], 1e-6) << i;
    }
  }
}

TEST(FollowPathTest, KeepsTheLimitOnChanges) {
  std::mt19937 random(7);
  const Planner planner = RandomPlanner(random, 3, 8, 5);
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<int> knobs;
  const Lead lead = RandomLead(pipeline, random, &knobs);
  int found = 0;
  for (const int most : {3, 6, 10, 20, 1000}) {
    double change_joules = 1;
    const auto within = KnobsAlongWithin(pipeline, lead, 0.1, most, &change_joules);
    if (within.empty()) continue;
    ++found;
    EXPECT_LE(CountChanges(pipeline.dag, within), most);
    EXPECT_EQ(within, KnobsAlong(pipeline, lead, change_joules, 0.1));
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace perseus::robust
