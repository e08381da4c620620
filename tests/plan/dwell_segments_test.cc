// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/dwell_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
    const auto levels = DwellLevels(pipeline, std::vector<double>(4, dwell));
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

// A forward of 1 s and a backward of 2 s take turns: cycles of 3 s.
TEST(DwellLevelsTest, WholeCyclesAreAlike) {
  std::string rows = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 3; ++stage) {
    const std::string name = std::to_string(stage);
    rows += name + ",forward,1400,1,100\n" + name + ",backward,1400,2,200\n";
  }
  const CostedPipeline pipeline =
      plan_testing::Costed(rows, plan_testing::DagOf("1f1b", 3, 8), plan_testing::Blocking(50));
  for (const auto& [dwell, least] : {std::pair{0.5, 3.0}, {1.5, 3.0}, {3.0, 3.0}, {3.1, 6.0}}) {
    const std::vector<double> seconds = WholeCycles(pipeline, dwell);
    ASSERT_EQ(seconds.size(), 3U);
    for (const double each : seconds) {
      EXPECT_GE(each, dwell);
      EXPECT_NEAR(each, least, 1e-6);
    }
    // Of the last stage, whose forwards and backwards always take turns.
    const auto levels = DwellLevels(pipeline, seconds);
    for (const std::vector<int>& group : levels.back()) {
      if (pipeline.dag.computations[group.front()].rank != 2) continue;
      EXPECT_EQ(group.size(), static_cast<std::size_t>(2 * least / 3));
    }
  }
}

}  // namespace
}  // namespace perseus::plan
