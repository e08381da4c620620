// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/profile_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

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
            "stage,instruction,frequency,time,energy,time_std\n"
            "0,forward,1400,1.02,101,0.029652000000000026\n");
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
            "stage,instruction,frequency,time,energy,time_std\n"
            "0,backward,1400,1,1,0\n1,forward,1200,2,1,0\n");
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

}  // namespace
}  // namespace perseus::server
