// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <utility>

#include "frontier/problems.h"
#include "perseus/frontier.h"

namespace perseus {
namespace {

using frontier_testing::UnevenPipeline;

TEST(EstimateTest, CountsWhatTheHullKeeps) {
  TimeCostProblem problem = frontier_testing::HouseProblem();
  problem.curves.push_back({{1, 5}, {2, 0}});  // Of no activity.
  const FrontierSize size = *SizeOf(problem, 0);
  EXPECT_EQ(size.activities, 3);
  EXPECT_EQ(size.precedences, 2);
  EXPECT_EQ(size.curve_segments, 3);  // Slopes 25, 10; 10.
  EXPECT_EQ(size.segments, 4);
  // To multiples of 20: 20 and 20 of 25 and 10 are one; 10 rounds to 20 as well.
  EXPECT_EQ(SizeOf(problem, 20)->curve_segments, 2);
  EXPECT_EQ(SizeOf(problem, 100)->curve_segments, 0);
}

TEST(EstimateTest, IsWithinAFactorOfThreeForPipelines) {
  for (const auto& [stages, microbatches] :
       {std::pair{2, 500}, {4, 100}, {8, 32}, {8, 96}, {16, 64}, {64, 4}}) {
    const TimeCostProblem problem = UnevenPipeline(stages, microbatches);
    const FrontierEstimate estimate = EstimateFrontier(*SizeOf(problem, 0));
    const auto frontier = SolveFrontier(problem, {});
    ASSERT_TRUE(frontier);
    const double share = static_cast<double>(frontier->work) / estimate.work;
    EXPECT_GT(share, 1 / 3.0) << stages << " x " << microbatches;
    EXPECT_LT(share, 3) << stages << " x " << microbatches;
  }
}

TEST(EstimateTest, GrowsWithTheProblem) {
  const FrontierEstimate small = EstimateFrontier(*SizeOf(UnevenPipeline(8, 32), 0));
  const FrontierEstimate large = EstimateFrontier(*SizeOf(UnevenPipeline(16, 64), 0));
  EXPECT_GT(large.breakpoints, small.breakpoints);
  EXPECT_GT(large.seconds, small.seconds);
  EXPECT_GT(large.bytes, small.bytes);
  EXPECT_GT(EstimateFrontier({}).breakpoints, 0);
}

}  // namespace
}  // namespace perseus
