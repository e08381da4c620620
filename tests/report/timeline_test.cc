// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/timeline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report_fixture.h"

namespace perseus::report {
namespace {

class TimelineTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TimelineTest, ComputationsKeepTheirTimesAndNeverOverlap) {
  const bool two_stages_a_rank = std::string(GetParam()) != "1f1b";
  const Sample sample = MakeSample(GetParam(), 8, two_stages_a_rank ? 2 : 1, 16);
  const TimelineRun timeline = RunOf(sample.pipeline, sample.chosen, "");
  for (const std::vector<int>& order : sample.pipeline.dag.rank_order) {
    std::int64_t previous_end = 0;
    for (const int i : order) {
      EXPECT_GE(timeline.start_ns[i], previous_end);
      EXPECT_NEAR(static_cast<double>(timeline.end_ns[i] - timeline.start_ns[i]),
                  sample.chosen.options[i].time_seconds * 1e9, 1.0);
      previous_end = timeline.end_ns[i];
    }
    EXPECT_LE(previous_end, timeline.iteration_ns);
  }
}

TEST_P(TimelineTest, TheCriticalPathLeadsFromStartToEndWithoutAGap) {
  const bool two_stages_a_rank = std::string(GetParam()) != "1f1b";
  const Sample sample = MakeSample(GetParam(), 8, two_stages_a_rank ? 2 : 1, 16);
  for (const Plan* plan : {&sample.baseline, &sample.chosen}) {
    const TimelineRun timeline = RunOf(sample.pipeline, *plan, "");
    ASSERT_FALSE(timeline.critical_path.empty());
    EXPECT_EQ(timeline.start_ns[timeline.critical_path.front()], 0);
    EXPECT_EQ(timeline.end_ns[timeline.critical_path.back()], timeline.iteration_ns);
    for (std::size_t k = 1; k < timeline.critical_path.size(); ++k) {
      EXPECT_EQ(timeline.end_ns[timeline.critical_path[k - 1]],
                timeline.start_ns[timeline.critical_path[k]]);
      EXPECT_TRUE(timeline.critical[timeline.critical_path[k]]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, TimelineTest,
                         ::testing::Values("1f1b", "zbv-zero-bubble", "dualpipev"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(TimelineLabelTest, NamesComputations) {
  Computation computation;
  computation.id = {ComputationType::kForward, 2, 3};
  EXPECT_EQ(ComputationLabel(computation), "F3");
  computation.fused = ComputationId{ComputationType::kBackward, 5, 1};
  EXPECT_EQ(ComputationLabel(computation), "F3+B1");
}

TEST(TimelineLabelTest, FindsTheStagesOfARank) {
  const Sample sample = MakeSample("dualpipev", 8, 2, 8);
  EXPECT_EQ(StagesOfRanks(sample.pipeline.dag),
            (std::vector<std::vector<int>>{{0, 7}, {1, 6}, {2, 5}, {3, 4}}));
}

}  // namespace
}  // namespace perseus::report
