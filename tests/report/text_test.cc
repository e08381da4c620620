// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mentions.h"

namespace perseus::report {
namespace {

TEST(TextTest, ScriptJsonCannotCloseTheScript) {
  const nlohmann::ordered_json json = {{"name", "</script><!--&"}};
  const std::string text = ScriptJson(json);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), json);
}

TEST(TextTest, ScriptJsonReplacesWhatIsNotText) { EXPECT_EQ(ScriptJson("a\x80z"), "\"a\ufffdz\""); }

TEST(TextTest, RoundsToSignificantDigits) {
  EXPECT_EQ(RoundSignificant(1234.5678, 6), 1234.57);
  EXPECT_EQ(RoundSignificant(-0.00012345, 2), -0.00012);
  EXPECT_EQ(RoundSignificant(0, 5), 0);
}

TEST(TextTest, UnitsShowFiveDigits) {
  EXPECT_EQ(TimeUnit(5.63214).Text(5.63214), "5.6321\u00a0s");
  EXPECT_EQ(TimeUnit(0.0123456).Text(0.0123456), "12.346\u00a0ms");
  EXPECT_EQ(TimeUnit(12e-6).Text(12e-6), "12.000\u00a0\u00b5s");
  EXPECT_EQ(EnergyUnit(233390).Text(233390), "233.39\u00a0kJ");
  EXPECT_EQ(EnergyUnit(2.5e6).Text(2.5e6), "2.5000\u00a0MJ");
  EXPECT_EQ(PowerUnit(83.64).Text(83.64), "83.64\u00a0W");
  // The unit follows the figure it was chosen for.
  EXPECT_EQ(EnergyUnit(1000).Text(10), "0.0100\u00a0kJ");
}

TEST(TextTest, ChangesAreSigned) {
  EXPECT_EQ(ChangePercent(15.2, 2), "+15.20\u00a0%");
  EXPECT_EQ(ChangePercent(-3, 1), "\u22123.0\u00a0%");
  EXPECT_EQ(ChangePercent(-0.001, 2), "0.00\u00a0%");
  EXPECT_EQ(ChangePercent(0.001, 2), "0.00\u00a0%");
  EXPECT_EQ(SavingPercent(15.2, 2), "15.20\u00a0%");
  EXPECT_EQ(SavingPercent(-3, 1), "\u22123.0\u00a0%");
}

// Rounded up: what may exist is never more than what is said.
TEST(TextTest, SharedKnobTextStaysTrue) {
  const std::string gap = SharedKnobText({.lower_bound_joules = 1, .gap_percent = 0.0301});
  EXPECT_THAT(gap, Mentions("constraints", "0.031"));
  const std::string best =
      SharedKnobText({.lower_bound_joules = 1, .gap_percent = 1e-9, .proven_best = true});
  EXPECT_THAT(best, Mentions("constraints", "proven"));
  EXPECT_EQ(best.find('%'), std::string::npos);
}

}  // namespace
}  // namespace perseus::report
