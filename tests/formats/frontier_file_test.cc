// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "perseus/plan.h"
#include "perseus/plan_file.h"

namespace perseus {
namespace {

TEST(FrontierFile, HasTheNamedColumnsAndTheShortestNumbers) {
  Frontier frontier;
  frontier.points = {{2.8365, 12000.1, 1234.5}, {0.1 + 0.2, 1e-7, 1e22}, {5, 9000, 0}};
  EXPECT_EQ(FormatFrontierCsv(frontier),
            "iteration_time_s,energy_j,slope_w\n"
            "2.8365,12000.1,1234.5\n"
            "0.30000000000000004,1e-07,1e+22\n"
            "5,9000,0\n");
}

TEST(FrontierFile, WithoutPointsIsItsHeader) {
  EXPECT_EQ(FormatFrontierCsv({}), "iteration_time_s,energy_j,slope_w\n");
}

}  // namespace
}  // namespace perseus
