// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/power_cap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/pipelines.h"

namespace perseus::policy {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using testing::ElementsAre;

// Forward: 300, 100 W. Backward: 250, 150 W.
const std::string kOneStage =
    "0,forward,1000,1,300\n0,forward,500,2,200\n0,backward,1000,2,500\n0,backward,500,4,600\n";

TEST(PowerCap, HasOneMemberForEachPowerThatAllCanKeepTo) {
  // 100 W is none: the backward draws 150 W at least.
  EXPECT_THAT(PowerCapMembers(Costed(kOneStage, DagOf("1f1b", 1, 2), Blocking(10))),
              ElementsAre(TableChoice{1, 1}, TableChoice{1, 0}, TableChoice{0, 0}));
}

TEST(PowerCap, RunsTheHighestClockWithinTheCapAlsoWhereItIsNotTheFastest) {
  // Forward: 200 W at 1000, 220 W at 900 and faster there.
  const std::string rows =
      "0,forward,1000,1.1,220\n0,forward,900,1,220\n0,forward,500,2,200\n0,backward,500,1,50\n";
  EXPECT_THAT(PowerCapMembers(Costed(rows, DagOf("1f1b", 1, 1), Blocking(10))),
              ElementsAre(TableChoice{2, 0}, TableChoice{0, 0}, TableChoice{0, 0}));
}

TEST(PowerCap, TakesTheFastestWhereKnobsAreLabels) {
  const std::string rows =
      "0,forward,a,2,200\n0,forward,b,1,150\n0,forward,c,3,600\n0,backward,a,1,10\n";
  // 100 W: a. 150 W: b, although a comes first. 200 W: still b.
  EXPECT_THAT(PowerCapMembers(Costed(rows, DagOf("1f1b", 1, 1), Blocking(10))),
              ElementsAre(TableChoice{0, 0}, TableChoice{1, 0}, TableChoice{1, 0}));
}

TEST(PowerCap, ThinsManyPowersEvenly) {
  std::string rows;
  for (int k = 0; k < 600; ++k) {
    rows += fmt::format("0,forward,{},1,{}\n", 2000 - k, 1000 - k);
    rows += fmt::format("0,backward,{},1,{}\n", 2000 - k, 1000.5 - k);
  }
  const auto members = PowerCapMembers(Costed(rows, DagOf("1f1b", 1, 1), Blocking(10)));
  ASSERT_EQ(members.size(), kMostPowerCaps);
  EXPECT_EQ(members.front(), (TableChoice{599, 599}));
  EXPECT_EQ(members.back(), (TableChoice{0, 0}));
  int widest = 0;
  for (std::size_t i = 1; i < members.size(); ++i) {
    widest = std::max(widest, members[i - 1][0] - members[i][0]);
  }
  EXPECT_LE(widest, 3);  // 600 clocks in 255 steps.
}

}  // namespace
}  // namespace perseus::policy
