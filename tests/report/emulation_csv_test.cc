// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "perseus/emulation_report.h"

namespace perseus::report {
namespace {

TEST(EmulationCsvTest, WritesIterations) {
  Emulation emulation;
  emulation.iterations = {{0, 1.5, 1.25, 0, {10, 1, 0, 0.1}},
                          {1.5, 0.1 + 0.2, 1.25, 2, {1e20, -0.5, 3, 1.0 / 3}}};
  EXPECT_EQ(FormatIterationsCsv(emulation),
            "iteration,start_s,time_s,target_s,straggling_pipelines,useful_j,intrinsic_bloat_j,"
            "extrinsic_bloat_j,blocking_j\n"
            "0,0,1.5,1.25,0,10,1,0,0.1\n"
            "1,1.5,0.30000000000000004,1.25,2,1e+20,-0.5,3,0.3333333333333333\n");
}

TEST(EmulationCsvTest, WritesPower) {
  Emulation emulation;
  emulation.power = {0.25, {100, 200.125}};
  EXPECT_EQ(FormatPowerCsv(emulation), "start_s,power_w\n0,100\n0.25,200.125\n");
}

TEST(EmulationCsvTest, OfNothingIsAHeader) {
  EXPECT_EQ(FormatPowerCsv({}), "start_s,power_w\n");
  EXPECT_TRUE(FormatIterationsCsv({}).ends_with(",blocking_j\n"));
}

}  // namespace
}  // namespace perseus::report
