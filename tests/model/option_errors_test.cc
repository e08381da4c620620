// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "model/saving_interval.h"

namespace perseus::model {
namespace {

// One stage with one kind of computation at three knobs.
CostedPipeline ThreeKnobs() {
  CostedPipeline pipeline;
  pipeline.dag.num_ranks = 1;
  pipeline.dag.computations.resize(1);
  pipeline.knobs.resize(3);
  pipeline.table_of = {0};
  CostTable table;
  for (int knob = 0; knob < 3; ++knob) {
    table.all_options.push_back({.knob = knob, .time_seconds = 1.0 + knob, .energy_joules = 9});
  }
  table.baseline = table.all_options[0];
  pipeline.tables = {table};
  return pipeline;
}

void SetErrors(double time_std, const std::vector<double>& sources, CostedPipeline* pipeline) {
  for (int knob = 0; knob < 3; ++knob) {
    pipeline->errors.push_back(
        {.stage = 0, .knob = knob, .time_std = time_std, .time_sources = sources});
  }
}

TEST(TrueTimesTest, AreAsMeasuredWithoutErrors) {
  EXPECT_TRUE(DrawTrueTimes(ThreeKnobs(), 1).empty());
}

TEST(TrueTimesTest, HaveTheSpreadOfTheErrorsAgainstTheBaseline) {
  CostedPipeline pipeline = ThreeKnobs();
  SetErrors(0.01, {}, &pipeline);
  constexpr int kDraws = 4000;
  double squares = 0;
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::vector<double> times = DrawTrueTimes(pipeline, seed);
    ASSERT_EQ(times.size(), 3U);
    EXPECT_EQ(times[0], 1);
    EXPECT_NE(times[1], times[2]);
    squares += (times[1] - 1) * (times[1] - 1) / kDraws;
  }
  // Two errors: the option's and the baseline's.
  EXPECT_NEAR(std::sqrt(squares), 0.01 * std::sqrt(2.0), 0.0005);
  EXPECT_EQ(DrawTrueTimes(pipeline, 7), DrawTrueTimes(pipeline, 7));
}

// What all options have in common says nothing of the difference.
TEST(TrueTimesTest, CommonSourcesCancel) {
  CostedPipeline pipeline = ThreeKnobs();
  SetErrors(0.01, {0.01}, &pipeline);
  for (const double time : DrawTrueTimes(pipeline, 3)) EXPECT_DOUBLE_EQ(time, 1);
}

}  // namespace
}  // namespace perseus::model
