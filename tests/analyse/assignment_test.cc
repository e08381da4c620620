// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "perseus/stream.h"
#include "plan/stream_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Stream;
using testing::HasSubstr;

TEST(AssignmentTest, EveryOrderHasEveryMicrobatchOnceAndTheSearchIsNoWorse) {
  const std::vector<double> lengths = {1, 3, 0.5, 0.5, 2, 0.25};
  AssignmentSpec spec;
  spec.pipelines = 2;
  spec.tries = 60;
  const auto results = AnalyseAssignment(Stream(3), lengths, spec);
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 6U);
  EXPECT_EQ(results->front().name, "as given");
  EXPECT_EQ(results->back().name, "searched");
  for (const AssignmentResult& each : *results) {
    std::vector<int> sorted = each.microbatches;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int> all(lengths.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all) << each.name;
    EXPECT_LE(results->back().baseline_seconds, each.baseline_seconds) << each.name;
    EXPECT_LE(each.planned_joules, each.baseline_joules) << each.name;
  }
  EXPECT_EQ((*results)[1].microbatches, (std::vector<int>{1, 0, 2, 4, 3, 5}));
  // The longest, 3, with the shortest; 2 and 1 with the other.
  EXPECT_EQ((*results)[3].microbatches, (std::vector<int>{1, 2, 5, 0, 3, 4}));
  EXPECT_EQ(results->front().late_joules, results->front().planned_joules);
}

TEST(AssignmentTest, EqualLengthsHaveNothingToGain) {
  AssignmentSpec spec;
  spec.tries = 10;
  const auto results = AnalyseAssignment(Stream(3), {2, 2, 2}, spec);
  ASSERT_TRUE(results);
  for (const AssignmentResult& each : *results) {
    EXPECT_EQ(each.baseline_seconds, results->front().baseline_seconds);
    EXPECT_EQ(each.planned_joules, results->front().planned_joules);
  }
}

TEST(AssignmentTest, RefusesAnotherNumberOfLengths) {
  const auto results = AnalyseAssignment(Stream(3), {1, 1, 1, 1}, {});
  ASSERT_FALSE(results);
  EXPECT_THAT(results.error().message, Mentions("4", "microbatches"));
}

TEST(AssignmentTest, RefusesAnotherTarget) {
  for (const char* target : {"1.2x", "0.9x", "20", "tstar", "fastest"}) {
    StreamOptions options;
    options.target = *ParsePlanTarget(target);
    const StreamPlanner stream = Stream(3, options);
    const auto results = AnalyseAssignment(stream, {1, 2, 1, 1, 1, 1}, {.pipelines = 2});
    ASSERT_FALSE(results) << target;
    EXPECT_EQ(results.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(results.error().message, HasSubstr(PlanTargetText(options.target)));
  }
}

}  // namespace
}  // namespace perseus
