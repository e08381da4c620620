// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/stage_savings.h"

#include <gtest/gtest.h>

#include <string_view>

#include "report_fixture.h"

namespace perseus::report {
namespace {

TEST(StageSavingsTest, AddUpToTheSavingOfThePlan) {
  for (const char* schedule :
       {"1f1b", "early-recomputation-1f1b", "zbv-zero-bubble", "dualpipev"}) {
    const Sample sample =
        MakeSample(schedule, 8, std::string_view(schedule).ends_with("1f1b") ? 1 : 2, 16);
    double joules =
        (sample.baseline.iteration_time_seconds - sample.chosen.iteration_time_seconds) *
        sample.pipeline.total_blocking_power_watts;
    for (const StageSavings& stage :
         ComputeStageSavings(sample.pipeline, sample.baseline, sample.chosen)) {
      joules += stage.total_joules();
    }
    EXPECT_NEAR(joules, sample.baseline.energy_joules - sample.chosen.energy_joules,
                1e-9 * sample.baseline.energy_joules)
        << schedule;
  }
}

TEST(StageSavingsTest, SplitsByStageAndType) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  // Slow down one forward of stage 2 and nothing else.
  Plan one = sample.baseline;
  int slowed = -1;
  for (int i = 0; i < sample.pipeline.dag.size() && slowed < 0; ++i) {
    if (sample.pipeline.dag.computations[i].id == ComputationId{ComputationType::kForward, 2, 5}) {
      slowed = i;
    }
  }
  ASSERT_GE(slowed, 0);
  one.options[slowed] = sample.pipeline.TableOf(slowed).options.back();
  const double saved =
      (sample.baseline.options[slowed].energy_joules - one.options[slowed].energy_joules) +
      84 * (one.options[slowed].time_seconds - sample.baseline.options[slowed].time_seconds);
  const std::vector<StageSavings> stages =
      ComputeStageSavings(sample.pipeline, sample.baseline, one);
  ASSERT_EQ(stages.size(), 4u);
  for (const StageSavings& stage : stages) {
    EXPECT_NEAR(stage.forward_joules, stage.stage == 2 ? saved : 0, 1e-9);
    EXPECT_EQ(stage.backward_joules, 0);
    EXPECT_EQ(stage.rank, stage.stage);
  }
  EXPECT_LT(stages[2].forward_clock, 1410);
  EXPECT_NEAR(stages[2].backward_clock, 1410, 1e-9);
}

}  // namespace
}  // namespace perseus::report
