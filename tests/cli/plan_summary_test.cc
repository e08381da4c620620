// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/planning/summary.h"

namespace perseus::cli {
namespace {

std::vector<std::string> NamesOf(const std::vector<PlanPoint>& points) {
  std::vector<std::string> names;
  for (const PlanPoint& point : points) names.push_back(point.name);
  return names;
}

Frontier MakeFrontier(double fastest, double min_energy, double tstar) {
  Frontier frontier;
  frontier.fastest_seconds = fastest;
  frontier.min_energy_seconds = min_energy;
  frontier.tstar_seconds = tstar;
  return frontier;
}

TEST(PlanSummaryTest, PointsAscendAndStopAtTStar) {
  std::vector<std::string> beyond;
  const auto points = TablePoints(MakeFrontier(9.9, 10.15, 10.3), 10, 10, "1.0x", &beyond);
  EXPECT_EQ(NamesOf(points),
            (std::vector<std::string>{"t_min", "no_slowdown", "plus_1_percent", "t_min_energy",
                                      "plus_2_percent", "t_star"}));
  EXPECT_EQ(beyond, (std::vector<std::string>{"+5 %", "+10 %"}));
}

TEST(PlanSummaryTest, TMinIsLeftOutWhereItIsNoSlowdown) {
  std::vector<std::string> beyond;
  const auto points =
      TablePoints(MakeFrontier(10 * (1 + 1e-12), 12, 15), 10, 10.7, "10.7s", &beyond);
  EXPECT_EQ(
      NamesOf(points),
      (std::vector<std::string>{"no_slowdown", "plus_1_percent", "plus_2_percent", "plus_5_percent",
                                "at", "plus_10_percent", "t_min_energy", "t_star"}));
  EXPECT_EQ(points[4].label, "--at 10.7s");
  EXPECT_TRUE(beyond.empty());
}

// With one option everywhere all named times are one; what was asked for stays.
TEST(PlanSummaryTest, WhatWasAskedForStaysBeyondTStar) {
  std::vector<std::string> beyond;
  const auto points = TablePoints(MakeFrontier(10, 10, 10), 10, 11, "1.1x", &beyond);
  EXPECT_EQ(NamesOf(points),
            (std::vector<std::string>{"no_slowdown", "t_min_energy", "t_star", "plus_10_percent"}));
  EXPECT_EQ(beyond, (std::vector<std::string>{"+1 %", "+2 %", "+5 %"}));
}

}  // namespace
}  // namespace perseus::cli
