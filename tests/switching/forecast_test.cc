// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/schedule.h"
#include "switching/clock_replay.h"

namespace perseus::switching {
namespace {

using testing::ElementsAre;

// One rank with two rows.
std::shared_ptr<const PlannedRows> Planned(std::vector<int> knobs, std::vector<Row> rows) {
  auto planned = std::make_shared<PlannedRows>();
  planned->first_row = {0, 2};
  planned->knobs = std::move(knobs);
  planned->rows = std::move(rows);
  return planned;
}

TEST(ForecastTest, RowsAreThoseOfThePlansReplay) {
  // F of stage 0 on rank 0, then of stage 1 on rank 1, with a transfer of 0.5.
  const Schedule schedule =
      *BuildSchedule({.name = "1f1b", .num_stages = 2, .virtual_stages = 1, .num_microbatches = 1});
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.5};
  const PipelineDag dag = *BuildDag(schedule, fixed);
  std::vector<int> knobs;
  std::vector<double> durations;
  for (const Computation& computation : dag.computations) {
    knobs.push_back(10 * computation.rank + computation.position);
    durations.push_back(1);
  }
  const PlannedRows planned = MakeRows(dag, knobs, durations);
  EXPECT_EQ(planned.first_row, (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(planned.knobs, (std::vector<int>{0, 1, 10, 11}));
  EXPECT_EQ(planned.rows, (std::vector<Row>{{1, 0}, {1, 3, 3}, {1, 1.5, 1.5}, {1, 0}}));
}

TEST(ForecastTest, NextOthersAreRowsWithAnotherKnob) {
  PlannedRows rows;
  rows.first_row = {0, 4, 6, 8};
  rows.knobs = {1, 1, 0, 1, 2, 2, 0, 1};
  FindNextOthers(&rows);
  EXPECT_THAT(rows.next_other, ElementsAre(2, 2, 3, 5, 3, 3, 1, 2));
}

TEST(ForecastTest, SameKnobsKeepWhatWasMeasured) {
  Forecast forecast;
  forecast.Follow(Planned({0, 1}, {{1, 0}, {2, 1}}));
  EXPECT_EQ(forecast.rows[1], (Row{2, 1}));
  forecast.rows[1] = {5, 3};
  forecast.EndIteration(10);
  forecast.Follow(Planned({0, 1}, {{9, 9}, {9, 9}}));
  EXPECT_EQ(forecast.rows[1], (Row{5, 3}));
  EXPECT_TRUE(forecast.measured);
}

TEST(ForecastTest, MeasuredTimesCorrectAnotherPlan) {
  Forecast forecast;
  forecast.Follow(Planned({0, 1}, {{1, 0}, {3, 1}}));
  forecast.rows = {{2, 0}, {3, 2}};
  forecast.last_end_seconds = {8};
  forecast.EndIteration(10);
  EXPECT_EQ(forecast.last_end_seconds[0], -2);
  forecast.Follow(Planned({1, 1}, {{4, 0.5}, {3, 1}}));
  // The first row twice as long as planned, both together 5 / 4.
  EXPECT_EQ(forecast.rows, (std::vector<Row>{{8, 0.625}, {3, 1.25}}));
  EXPECT_FALSE(forecast.measured);
  EXPECT_TRUE(forecast.has_last);
}

TEST(ForecastTest, RowsPlannedToTakeNoTimeGoByTheSums) {
  Forecast forecast;
  forecast.Follow(Planned({0, 1}, {{0, 0}, {2, 0}}));
  forecast.rows = {{1, 0}, {2, 0}};
  forecast.EndIteration(10);
  forecast.Follow(Planned({1, 0}, {{2, 0}, {2, 0}}));
  EXPECT_EQ(forecast.rows, (std::vector<Row>{{3, 0}, {2, 0}}));
}

}  // namespace
}  // namespace perseus::switching
