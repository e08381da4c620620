// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "model/plan_figures.h"

namespace perseus::model {
namespace {

PlanConstraints All() {
  return {
      .granularity = Granularity::kStage, .time_margin_sigmas = 2, .time_margin_fraction = 0.01};
}

// A member that the list lacks would be left out of plan.json, the report and the checks.
TEST(ConstraintsTest, AreAllMembers) {
  PlanConstraints copied;
  for (const Constraint& each : Constraints()) {
    EXPECT_FALSE(each.IsIn(PlanConstraints{})) << each.key;
    EXPECT_TRUE(each.IsIn(All())) << each.key;
    EXPECT_FALSE(each.IsIn(copied)) << each.key << " is listed twice";
    each.Copy(All(), &copied);
    EXPECT_TRUE(each.IsIn(copied)) << each.key;
  }
  EXPECT_EQ(copied.granularity, All().granularity);
  EXPECT_EQ(copied.time_margin_sigmas, All().time_margin_sigmas);
  EXPECT_EQ(copied.time_margin_fraction, All().time_margin_fraction);
}

TEST(ConstraintsTest, ThoseOfOneTableAndOfOneFieldStandTogether) {
  for (const auto member : {&Constraint::table, &Constraint::field}) {
    std::set<std::string_view> seen;
    std::string_view last;
    for (const Constraint& each : Constraints()) {
      if (each.*member != last) {
        EXPECT_TRUE(seen.insert(each.*member).second) << each.*member;
      }
      last = each.*member;
    }
  }
}

TEST(ConstraintsTest, RefusesWhatConstrainsNoPlan) {
  EXPECT_TRUE(CheckConstraints({}));
  EXPECT_TRUE(CheckConstraints(All()));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(CheckConstraints({.time_margin_sigmas = bad}));
    EXPECT_FALSE(CheckConstraints({.time_margin_fraction = bad}));
  }
  EXPECT_FALSE(CheckConstraints({.granularity = static_cast<Granularity>(99)}));
}

}  // namespace
}  // namespace perseus::model
