// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/profile_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "perseus/profile.h"

namespace perseus::server {
namespace {

store::Measurements Measured(int rank, double time, double energy, bool done = false,
                             std::optional<double> power = {}) {
  return {.rank = rank,
          .rows = {{.stage = 0, .clock_mhz = 1400, .time_seconds = time, .energy_joules = energy}},
          .blocking_power_watts = power,
          .done = done};
}

TEST(ProfileTableTest, OneDisturbedRankMovesNothing) {
  ProfileTable table;
  table.Add(Measured(0, 1.0, 100), 0);
  table.Add(Measured(1, 1.02, 101), 0);
  table.Add(Measured(2, 9.0, 900), 0);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,1400,1.02,101,0.029652000000000026,1.4826\n");
}

TEST(ProfileTableTest, RowsAreSortedWhoeverSentThem) {
  ProfileTable table;
  store::Measurements measured{.rank = 0};
  measured.rows = {{.stage = 1, .clock_mhz = 1200, .time_seconds = 2, .energy_joules = 1},
                   {.stage = 0,
                    .type = ComputationType::kBackward,
                    .clock_mhz = 1400,
                    .time_seconds = 1,
                    .energy_joules = 1}};
  table.Add(measured, 0);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,backward,1400,1,1,0,0\n1,forward,1200,2,1,0,0\n");
}

TEST(ProfileTableTest, IsCompleteWhenAllHaveEndedOrOneOfEachForLong) {
  const Shape shape{.pipeline_parallel = 2, .data_parallel = 2};
  ProfileTable table;
  table.Add(Measured(0, 1, 1, true), 0);
  EXPECT_FALSE(table.IsComplete(shape, 1e9));
  table.Add(Measured(1, 1, 1, true), 1);
  EXPECT_FALSE(table.IsComplete(shape, kProfileGraceSeconds - 1));
  EXPECT_TRUE(table.IsComplete(shape, kProfileGraceSeconds));
  table.Add(Measured(2, 1, 1, true), 0);
  table.Add(Measured(3, 1, 1, true), 1);
  EXPECT_TRUE(table.IsComplete(shape, 0));
}

TEST(ProfileTableTest, BlockingPowerIsPerPipelineRank) {
  ProfileTable table;
  EXPECT_TRUE(table.BlockingPowerWatts(3).empty());
  table.Add(Measured(0, 1, 1, false, 80), 0);
  table.Add(Measured(2, 1, 1, false, 90), 0);
  table.Add(Measured(4, 1, 1, false, 84), 0);
  table.Add(Measured(1, 1, 1, false, 70), 2);
  EXPECT_EQ(table.BlockingPowerWatts(3), (std::vector<double>{84, 77, 70}));
}

// The report of a rank that knows waiting by clock, at two clocks.
store::Measurements Waits(int rank, int stage, double high, double low) {
  return {.rank = rank,
          .rows = {{.stage = stage, .clock_mhz = 1400, .time_seconds = 1, .energy_joules = 400},
                   {.stage = stage,
                    .type = ComputationType::kBackward,
                    .clock_mhz = 1400,
                    .time_seconds = 2,
                    .energy_joules = 800}},
          .blocking_power_watts = high,
          .waiting = {{.clock_mhz = 1400, .watts = high, .std_watts = 2},
                      {.clock_mhz = 700, .watts = low, .std_watts = 3}}};
}

TEST(ProfileTableTest, WaitingByClockIsInTheProfile) {
  ProfileTable table;
  table.Add(Waits(0, 0, 80, 50), 0);
  table.Add(Waits(1, 1, 90, 60), 1);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,1400,1,400,0,0\n0,backward,1400,2,800,0,0\n"
            "1,forward,1400,1,400,0,0\n1,backward,1400,2,800,0,0\n"
            "# blocking: what a GPU that waits draws, fitted with the energies\n"
            "0,blocking,700,1,50,0,3\n0,blocking,1400,1,80,0,2\n"
            "1,blocking,700,1,60,0,3\n1,blocking,1400,1,90,0,2\n");
  const auto profile = ParseProfile(table.Csv(), "csv");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_TRUE(profile->SaysWaiting());
}

TEST(ProfileTableTest, WhatWasMeasuredWithNoClockSetIsInTheProfile) {
  ProfileTable table;
  store::Measurements measured = Waits(0, 0, 80, 50);
  measured.rows.push_back({.stage = 0,
                           .clock_mhz = store::kDefaultClockMhz,
                           .time_seconds = 0.9,
                           .energy_joules = 500});
  measured.done = true;
  table.Add(measured, 0);
  EXPECT_NE(table.Csv().find("\n0,forward,default,0.9,500,0,0\n"), std::string::npos);
  const auto profile = ParseProfile(table.Csv(), "csv");
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->default_clocks.size(), 1);
  EXPECT_EQ(profile->default_clocks[0].energy_joules, 500);
  EXPECT_EQ(profile->knobs.size(), 1);
  EXPECT_TRUE(table.HasOneClock(0));
  EXPECT_EQ(ProfileKeyText({.clock_mhz = store::kDefaultClockMhz}),
            "stage 0 forward at default clocks");
}

// As where no clock that was asked for took, or where a kind came only at the end.
TEST(ProfileTableTest, WhatWasMeasuredWithNoClockSetAloneIsLeftOut) {
  ProfileTable table;
  store::Measurements measured = {
      .rows = {{.clock_mhz = 1400, .time_seconds = 1, .energy_joules = 400}}};
  for (const auto type : {ComputationType::kForward, ComputationType::kBackward}) {
    measured.rows.push_back({.type = type,
                             .clock_mhz = store::kDefaultClockMhz,
                             .time_seconds = 0.9,
                             .energy_joules = 500});
  }
  table.Add(measured, 0);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,default,0.9,500,0,0\n0,forward,1400,1,400,0,0\n");
}

TEST(ProfileTableTest, RowsOfWaitingHaveAllColumns) {
  ProfileTable table;
  store::Measurements measured = Waits(0, 0, 80, 50);
  measured.rows[0].work = 7;
  measured.rows[0].temperature_celsius = 50;
  table.Add(measured, 0);
  const auto profile = ParseProfile(table.Csv(), "csv");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->waiting.size(), 2);
}

// Of most ranks of stage 1 it is one number, so theirs is that of all others.
TEST(ProfileTableTest, WhoDoesNotKnowWaitingByClockHasThatOfTheOthers) {
  ProfileTable table;
  table.Add(Waits(0, 0, 80, 50), 0);
  for (const int rank : {1, 3, 5}) {
    table.Add(Measured(rank, 1, 1, false, 85), 1);
  }
  table.Add(Waits(7, 1, 90, 60), 1);
  const auto waiting = table.Waiting(3);
  ASSERT_EQ(waiting.size(), 3);
  EXPECT_EQ(waiting[0].at(700).watts, 50);
  EXPECT_EQ(waiting[1].at(700).watts, 55);
  EXPECT_EQ(waiting[2].at(1400).watts, 85);
}

TEST(ProfileTableTest, WithoutWaitingByClockThereAreNoRowsOfIt) {
  ProfileTable table;
  table.Add(Measured(0, 1, 1, true, 85), 0);
  EXPECT_TRUE(table.Waiting(1).empty());
  EXPECT_EQ(table.Csv().find("blocking"), std::string::npos);
}

// A report of stage 0 forward at 1400 MHz.
store::Measurements Reported(int rank, store::MeasuredRow row) {
  row.clock_mhz = 1400;
  return {.rank = rank, .rows = {row}};
}

TEST(ProfileTableTest, StandardErrorsOfReportsAreCombined) {
  ProfileTable table;
  table.Add(Reported(0, {.time_seconds = 1, .energy_joules = 100, .time_std_seconds = 0.25}), 0);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,1400,1,100,0.25,0\n");
  // Of two that agree: smaller by the square root of two. Of four, a median's.
  table.Add(Reported(1, {.time_seconds = 1, .energy_joules = 100, .time_std_seconds = 0.25}), 0);
  EXPECT_THAT(table.Csv(), ::testing::HasSubstr("0,forward,1400,1,100,0.1767766952966369,0\n"));
  table.Add(Reported(2, {.time_seconds = 1, .energy_joules = 100, .time_std_seconds = 0.25}), 0);
  table.Add(Reported(3, {.time_seconds = 1, .energy_joules = 100, .time_std_seconds = 0.25}), 0);
  EXPECT_THAT(table.Csv(), ::testing::HasSubstr("0,forward,1400,1,100,0.15666"));
}

TEST(ProfileTableTest, ThrottledReportsCountOnlyWhereThereAreNoOthers) {
  ProfileTable table;
  table.Add(Reported(0, {.time_seconds = 2, .energy_joules = 50, .throttled = true}), 0);
  table.Add(Reported(1, {.time_seconds = 2.5, .energy_joules = 60, .throttled = true}), 0);
  EXPECT_EQ(table.Csv().substr(0, table.Csv().find("stage,")),
            "# stage 0 forward at 1400 MHz: the GPUs slowed themselves down while it was "
            "measured\n");
  EXPECT_EQ(table.Throttled(), (std::vector<ProfileKey>{{.clock_mhz = 1400}}));
  table.Add(Reported(2, {.time_seconds = 1, .energy_joules = 100}), 0);
  EXPECT_TRUE(table.Throttled().empty());
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,1400,1,100,0,0\n");
}

TEST(ProfileTableTest, WhatARankSaysAgainReplacesWhatItSaid) {
  ProfileTable table;
  table.Add(Reported(3, {.time_seconds = 9, .energy_joules = 900}), 0);
  table.Add(Reported(1, {.time_seconds = 1, .energy_joules = 100}), 0);
  table.Add(Measured(3, 1.5, 120, true, 80), 0);
  table.Add(Measured(3, 1, 100, true, 90), 0);
  EXPECT_EQ(table.Csv(),
            "stage,instruction,frequency,time,energy,time_std,energy_std\n"
            "0,forward,1400,1,100,0,0\n");
  EXPECT_EQ(table.RowsOf(3).size(), 1U);
  EXPECT_EQ(table.BlockingPowerWatts(1), (std::vector<double>{90}));
}

TEST(ProfileTableTest, WorkAndTemperatureAreColumnsWhereTheyWereSaid) {
  ProfileTable table;
  table.Add(Reported(0, {.time_seconds = 1,
                         .energy_joules = 100,
                         .temperature_celsius = 50,
                         .work = 2048,
                         .seconds_per_work = 0.5,
                         .joules_per_work = 0.25}),
            0);
  table.Add({.rank = 1, .rows = {{.stage = 1, .clock_mhz = 1400, .time_seconds = 1}}}, 1);
  const std::string csv = table.Csv();
  EXPECT_EQ(csv,
            "stage,instruction,frequency,time,energy,time_std,energy_std,"
            "work,time_per_work,energy_per_work,temperature_c\n"
            "0,forward,1400,1,100,0,0,2048,0.5,0.25,50\n"
            "1,forward,1400,1,0,0,0,,,,\n");
  // Of the columns that the planner does not know it takes no notice.
  const auto profile =
      ParseProfile(csv + "0,backward,1400,1,1,0,0,,,,\n1,backward,1400,1,1,0,0,7,,,60\n", "csv");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->num_stages, 2);
}

TEST(ProfileTableTest, SweepsNotesAndPowersAreSummedUp) {
  ProfileTable table;
  EXPECT_FALSE(table.Sweep());
  store::Measurements one{.rank = 0, .blocking_power_watts = 80, .blocking_power_std_watts = 1};
  one.sweep = store::SweepCost{.iterations = 100, .seconds = 60, .joules = 5, .extra_joules = -2};
  one.notes = {"odd"};
  store::Measurements other = one;
  other.rank = 1;
  other.sweep->iterations = 120;
  other.sweep->seconds = 50;
  other.counter_period_seconds = 0.02;
  other.notes = {"odd", "odder"};
  table.Add(one, 0);
  table.Add(other, 1);
  // What a rank says last counts.
  table.Add(other, 1);
  ASSERT_TRUE(table.Sweep());
  EXPECT_EQ(table.Sweep()->ranks, 2);
  EXPECT_EQ(table.Sweep()->cost.iterations, 120);
  EXPECT_EQ(table.Sweep()->cost.seconds, 60);
  EXPECT_EQ(table.Sweep()->cost.joules, 10);
  EXPECT_EQ(table.Sweep()->cost.extra_joules, -4);
  EXPECT_EQ(table.Sweep()->counter_period_seconds, 0.02);
  EXPECT_EQ(table.notes().at("odd").size(), 2U);
  EXPECT_EQ(table.notes().at("odder").size(), 1U);
  EXPECT_EQ(table.Blocking(2)[0].watts, 80);
  EXPECT_EQ(table.Blocking(2)[0].std_watts, 1);
}

// Whatever is reported: the medians are among the reports, deviations are not negative, and
// the table can be read as a profile.
RC_GTEST_PROP(ProfileTableRules, AnyReportsMakeAProfile, ()) {
  ProfileTable table;
  const int reports = *rc::gen::inRange(1, 12);
  double least = 1e9;
  double most = 0;
  bool has_sound = false;
  std::vector<store::MeasuredRow> rows;
  for (int i = 0; i < reports; ++i) {
    store::MeasuredRow row{.clock_mhz = 1400,
                           .time_seconds = *rc::gen::inRange(1, 1000) / 1000.0,
                           .energy_joules = *rc::gen::inRange(0, 1000) / 10.0,
                           .time_std_seconds = *rc::gen::inRange(0, 10) / 100.0,
                           .throttled = *rc::gen::inRange(0, 2) == 1};
    if (*rc::gen::inRange(0, 2) == 1) row.work = 7;
    has_sound = has_sound || !row.throttled;
    rows.push_back(row);
    store::MeasuredRow backward = row;
    backward.type = ComputationType::kBackward;
    table.Add({.rank = i, .rows = {row, backward}}, 0);
  }
  for (const store::MeasuredRow& row : rows) {
    if (has_sound && row.throttled) continue;
    least = std::min(least, row.time_seconds);
    most = std::max(most, row.time_seconds);
  }
  const auto profile = ParseProfile(table.Csv(), "csv");
  RC_ASSERT(profile.has_value());
  RC_ASSERT(profile->tables.size() == 2U);
  const Option& option = profile->tables[0].options.at(0);
  RC_ASSERT(option.time_seconds >= least);
  RC_ASSERT(option.time_seconds <= most);
  RC_ASSERT(option.time_std_seconds >= 0);
  RC_ASSERT(option.energy_std_joules >= 0);
  RC_ASSERT(table.Throttled().empty() == has_sound);
}

}  // namespace
}  // namespace perseus::server
