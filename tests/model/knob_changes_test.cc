// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <vector>

#include "perseus/plan.h"

namespace perseus {
namespace {

// Ranks of the computations 0, 2, 4 and 3, 1, of one, and of none.
PipelineDag SmallDag() {
  PipelineDag dag;
  dag.num_ranks = 4;
  dag.computations.resize(6);
  dag.rank_order = {{0, 2, 4}, {3, 1}, {5}, {}};
  return dag;
}

void ExpectChanges(const std::vector<int>& knobs, int within, int back) {
  const KnobChanges changes = *CountKnobChanges(SmallDag(), knobs);
  EXPECT_EQ(changes.within, within);
  EXPECT_EQ(changes.back, back);
  EXPECT_EQ(changes.all(), within + back);
  std::vector<CostOption> options;
  for (const int knob : knobs) options.push_back({.knob = knob});
  const KnobChanges same = *CountKnobChanges(SmallDag(), options);
  EXPECT_EQ(same.within, within);
  EXPECT_EQ(same.back, back);
}

TEST(KnobChangesTest, AreCountedAlongEachRankAndBackToItsFirst) {
  ExpectChanges({7, 7, 7, 7, 7, 7}, 0, 0);
  // What runs one after the other on another rank is no change.
  ExpectChanges({7, 3, 7, 3, 7, 1}, 0, 0);
  // There and back within the iteration.
  ExpectChanges({7, 7, 6, 7, 7, 7}, 2, 0);
  // Once, and back between iterations; of two computations, too.
  ExpectChanges({7, 7, 7, 7, 6, 7}, 1, 1);
  ExpectChanges({7, 6, 7, 7, 7, 7}, 1, 1);
  ExpectChanges({7, 6, 6, 7, 5, 4}, 3, 2);
}

}  // namespace
}  // namespace perseus
