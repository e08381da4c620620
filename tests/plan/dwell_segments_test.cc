// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/dwell_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "plan/pipelines.h"

namespace perseus::plan {
namespace {

TEST(DwellLevelsTest, StretchesLastLongEnoughAndAreNested) {
  std::mt19937 random(1);
  plan_testing::ProfileShape shape;
  shape.stages = 4;
  const CostedPipeline pipeline =
      plan_testing::Costed(plan_testing::RandomRows(random, shape),
                           plan_testing::DagOf("1f1b", 4, 9), plan_testing::Blocking(50));
  for (const double dwell : {0.5, 1.5, 4.0, 9.0, 1000.0}) {
    const auto levels = DwellLevels(pipeline, dwell);
    EXPECT_EQ(levels.front().size(), 4U);
    std::vector<int> coarser(pipeline.dag.size(), -1);
    for (const auto& groups : levels) {
      std::vector<int> group_of(pipeline.dag.size(), -1);
      std::vector<int> groups_of_rank(4, 0);
      for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
        std::set<int> parents;
        for (const int i : groups[g]) {
          EXPECT_EQ(group_of[i], -1);
          group_of[i] = g;
          parents.insert(coarser[i]);
        }
        EXPECT_EQ(parents.size(), 1U);
        ++groups_of_rank[pipeline.dag.computations[groups[g].front()].rank];
      }
      EXPECT_EQ(std::count(group_of.begin(), group_of.end(), -1), 0);
      for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
        const Computation& first = pipeline.dag.computations[groups[g].front()];
        double seconds = 0;
        for (std::size_t k = 0; k < groups[g].size(); ++k) {
          const Computation& c = pipeline.dag.computations[groups[g][k]];
          EXPECT_EQ(c.rank, first.rank);
          EXPECT_EQ(c.position, first.position + static_cast<int>(k));
          seconds += pipeline.TableOf(groups[g][k]).options.front().time_seconds;
        }
        if (groups_of_rank[first.rank] > 1) {
          EXPECT_GE(seconds, dwell);
        }
      }
      coarser = group_of;
    }
    if (dwell == 0.5) {
      EXPECT_EQ(static_cast<int>(levels.back().size()), pipeline.dag.size());
    }
    if (dwell == 1000.0) {
      EXPECT_EQ(levels.size(), 1U);
    }
  }
}

}  // namespace
}  // namespace perseus::plan
