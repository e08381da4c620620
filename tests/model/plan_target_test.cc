// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perseus/plan.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using Kind = PlanTarget::Kind;

TEST(PlanTargetTest, ReadsFactorsSecondsAndNames) {
  const auto check = [](std::string_view text, Kind kind, double value) {
    const auto target = ParsePlanTarget(text);
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_EQ(target->kind, kind) << text;
    EXPECT_EQ(target->value, value) << text;
  };
  check("1.02x", Kind::kBaselineFactor, 1.02);
  check("1x", Kind::kBaselineFactor, 1);
  check("5.3s", Kind::kSeconds, 5.3);
  check("1e-3s", Kind::kSeconds, 1e-3);
  check("100s", Kind::kSeconds, 100);
  check("300ms", Kind::kSeconds, 0.3);
  check("50us", Kind::kSeconds, 0.00005);
  check("1.02 x", Kind::kBaselineFactor, 1.02);
  check("300 ms", Kind::kSeconds, 0.3);
  check("5 s", Kind::kSeconds, 5);
  check("min-energy", Kind::kMinEnergy, 0);
  check("fastest", Kind::kFastest, 0);
  check("tstar", Kind::kTStar, 0);
}

TEST(PlanTargetTest, TextsRoundTrip) {
  for (const char* const text :
       {"1.0x", "1.02x", "5.3s", "0.001s", "min-energy", "fastest", "tstar"}) {
    EXPECT_EQ(PlanTargetText(*ParsePlanTarget(text)), text);
  }
  EXPECT_EQ(PlanTargetText(*ParsePlanTarget("1x")), "1.0x");
  EXPECT_EQ(*ParsePlanTarget("1x"), *ParsePlanTarget("1.0x"));
}

// It may be a factor or seconds: the same everywhere.
TEST(PlanTargetTest, RefusesANumberWithoutUnit) {
  for (const std::string text : {"1.05", "5.3", "1000", "1e-3"}) {
    const auto target = ParsePlanTarget(text);
    ASSERT_FALSE(target) << text;
    EXPECT_THAT(target.error().message, Mentions(text + "x"));
    EXPECT_THAT(target.error().message, Mentions(text + "s"));
  }
}

TEST(PlanTargetTest, RefusesEverythingElse) {
  for (const char* text :
       {"",     "x",   "0", "-1", "-1x", "nan",        "inf",   "1e999", "1.0 x x", " 1",
        "1 sx", "1xs", "s", "ms", "-1s", "Min-energy", "1.0xx", "0x10",  "1,5",     "1e-320us"}) {
    const auto target = ParsePlanTarget(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(target.error().message, Mentions("frontier;"));
  }
  EXPECT_THAT(ParsePlanTarget("2%").error().message, Mentions("1.02x"));
  const auto message = [](const char* text) { return ParsePlanTarget(text).error().message; };
  EXPECT_THAT(message("9min"), testing::EndsWith("; write 540s"));
  EXPECT_THAT(message("9 min"), testing::EndsWith("; write 540s"));
  EXPECT_THAT(message("0 us"), testing::Not(Mentions("write")));
  EXPECT_THAT(message("1e-320us"), testing::Not(Mentions("write")));
  EXPECT_LT(ParsePlanTarget(std::string(1000, 'y')).error().message.size(), 250U);
}

TEST(GranularityTest, NamesRoundTrip) {
  for (const Granularity granularity : {Granularity::kComputation, Granularity::kPhase,
                                        Granularity::kStageType, Granularity::kStage}) {
    EXPECT_EQ(ParseGranularity(GranularityName(granularity)), granularity);
  }
  EXPECT_EQ(GranularityName(Granularity::kStageType), "stage-type");
  EXPECT_FALSE(ParseGranularity("Stage"));
  EXPECT_FALSE(ParseGranularity(""));
}

}  // namespace
}  // namespace perseus
