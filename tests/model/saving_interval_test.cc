// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/saving_interval.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/schedule.h"

namespace perseus::model {
namespace {

// One rank that computes forward and backward, without waiting: 100 J at the first clock, 80 J at
// the second, in the same time.
CostedPipeline OneRank(double error) {
  Schedule schedule;
  schedule.name = "1f1b";
  schedule.num_ranks = schedule.num_stages = schedule.num_microbatches = 1;
  schedule.ranks = {
      {{{ComputationType::kForward, 0, 0}, {}}, {{ComputationType::kBackward, 0, 0}, {}}}};
  CostedPipeline pipeline;
  pipeline.dag = *BuildDag(schedule, {});
  pipeline.knobs = {{"1410", 1410}, {"1305", 1305}};
  pipeline.rank_blocking_power_watts = {10};
  pipeline.total_blocking_power_watts = 10;
  for (const Computation& computation : pipeline.dag.computations) {
    CostTable table;
    table.stage = computation.id.stage;
    table.type = computation.id.type;
    table.options = table.all_options = {{0, 1, 100}, {1, 1, 80}};
    table.baseline = table.options[0];
    pipeline.table_of.push_back(static_cast<int>(pipeline.tables.size()));
    pipeline.tables.push_back(std::move(table));
  }
  for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
    for (const int knob : {0, 1}) {
      pipeline.errors.push_back({.stage = 0, .type = type, .knob = knob, .power_std = error});
    }
  }
  return pipeline;
}

std::optional<SavingInterval> IntervalAtTheSecondClock(const CostedPipeline& pipeline) {
  std::vector<CostOption> options;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    options.push_back(pipeline.TableOf(i).options[1]);
  }
  return IntervalOfSaving(pipeline, options, Waiting::kSetClock);
}

TEST(SavingInterval, IsAsWideAsTheErrorsSay) {
  const auto interval = IntervalAtTheSecondClock(OneRank(0.01));
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR((interval->least_percent + interval->most_percent) / 2, 20, 0.2);
  // Of 1 - (a + b) / (c + d), where a, b are 80 J and c, d 100 J, all with an error of 1 %:
  // 80 / 100 * 0.01 = 0.8 points, and 2.23 of them on each side.
  EXPECT_NEAR((interval->most_percent - interval->least_percent) / 2, 2.23 * 0.8, 0.25);
  const auto wider = IntervalAtTheSecondClock(OneRank(0.02));
  EXPECT_NEAR((wider->most_percent - wider->least_percent) /
                  (interval->most_percent - interval->least_percent),
              2, 0.1);
}

TEST(SavingInterval, NeedsTheErrorsOfAllThatThePlanUses) {
  CostedPipeline pipeline = OneRank(0.01);
  pipeline.errors.pop_back();
  EXPECT_FALSE(IntervalAtTheSecondClock(pipeline).has_value());
  pipeline.errors.clear();
  EXPECT_FALSE(IntervalAtTheSecondClock(pipeline).has_value());
}

}  // namespace
}  // namespace perseus::model
