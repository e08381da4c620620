// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "analyse/stage_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::analyse {
namespace {

using plan_testing::ProfileOf;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using testing::HasSubstr;

constexpr double kRounding = 1e-12;

struct Totals {
  double seconds = 0;
  double joules = 0;
};

// Of all stages at their highest clocks.
Totals BaselineTotals(const Profile& profile) {
  Totals totals;
  for (const OptionTable& table : profile.tables) {
    totals.seconds += table.options[table.baseline].time_seconds;
    totals.joules += table.options[table.baseline].energy_joules;
  }
  return totals;
}

Profile Merged(const Profile& profile, int stages) {
  auto merged = MergeStages(profile, stages);
  EXPECT_TRUE(merged) << merged.error().message;
  return *std::move(merged);
}

TEST(StagePartsTest, MergingAddsNeighboursAtEachKnob) {
  const Profile merged = Merged(ProfileOf("stage,instruction,frequency,time,energy,time_std\n"
                                          "0,forward,1400,1,100,0.1\n"
                                          "0,forward,1000,2,90,0.2\n"
                                          "0,backward,1400,2,200,0\n"
                                          "0,backward,1000,4,150,0\n"
                                          "1,forward,1400,3,300,0.3\n"
                                          "1,forward,1000,5,250,0.5\n"
                                          "1,backward,1400,6,600,0\n"
                                          "1,backward,1000,7,550,0\n"),
                                1);
  ASSERT_EQ(merged.num_stages, 1);
  ASSERT_EQ(merged.tables.size(), 2U);
  const OptionTable* forward = merged.Find(0, ComputationType::kForward);
  ASSERT_NE(forward, nullptr);
  ASSERT_EQ(forward->options.size(), 2U);
  EXPECT_EQ(forward->options[0].time_seconds, 4);
  EXPECT_EQ(forward->options[0].energy_joules, 400);
  // Spreads add up: neighbours err together.
  EXPECT_DOUBLE_EQ(forward->options[1].time_std_seconds, 0.7);
  EXPECT_EQ(forward->options[forward->baseline].time_seconds, 4);
  EXPECT_EQ(PartSeconds(merged, {.stage = 0}), 12);
}

TEST(StagePartsTest, MergingKeepsTotals) {
  std::mt19937 random(31);
  for (int round = 0; round < 20; ++round) {
    const Profile profile =
        ProfileOf(RandomRows(random, {.stages = 12, .clocks = 5, .noise = 0.05}));
    const Totals before = BaselineTotals(profile);
    for (const int stages : {1, 2, 3, 4, 6, 12}) {
      const Profile merged = Merged(profile, stages);
      EXPECT_EQ(merged.num_stages, stages);
      const Totals after = BaselineTotals(merged);
      EXPECT_NEAR(after.seconds, before.seconds, kRounding * before.seconds);
      EXPECT_NEAR(after.joules, before.joules, kRounding * before.joules);
    }
    auto even = EvenStages(profile);
    ASSERT_TRUE(even) << even.error().message;
    const Totals after = BaselineTotals(*even);
    EXPECT_NEAR(after.seconds, before.seconds, kRounding * before.seconds);
    EXPECT_NEAR(after.joules, before.joules, kRounding * before.joules);
    for (int stage = 1; stage < even->num_stages; ++stage) {
      EXPECT_EQ(PartSeconds(*even, {.stage = stage}), PartSeconds(*even, {.stage = 0}));
    }
  }
}

TEST(StagePartsTest, AKnobThatOneLacksIsLeftOut) {
  const Profile merged = Merged(ProfileOf("0,forward,1400,1,9\n0,forward,1200,2,8\n"
                                          "0,forward,1000,3,7\n"
                                          "0,backward,1000,3,7\n0,backward,1400,1,9\n"
                                          "1,forward,1000,4,7\n1,forward,1200,3,8\n"
                                          "1,backward,1400,1,9\n1,backward,1000,3,7\n"),
                                1);
  const OptionTable* forward = merged.Find(0, ComputationType::kForward);
  ASSERT_NE(forward, nullptr);
  ASSERT_EQ(forward->options.size(), 2U);
  EXPECT_EQ(merged.knobs[forward->options[forward->baseline].knob].label, "1200");
  EXPECT_EQ(forward->options[forward->baseline].time_seconds, 5);
  const OptionTable* backward = merged.Find(0, ComputationType::kBackward);
  ASSERT_NE(backward, nullptr);
  EXPECT_EQ(backward->options[backward->baseline].time_seconds, 2);
}

TEST(StagePartsTest, LabelsKeepTheFirstRowAsBaseline) {
  const Profile merged = Merged(ProfileOf("0,forward,slow,2,8\n0,forward,fast,1,9\n"
                                          "0,backward,fast,1,9\n0,backward,slow,2,8\n"
                                          "1,forward,slow,2,8\n1,forward,fast,1,9\n"
                                          "1,backward,fast,1,9\n1,backward,slow,2,8\n"),
                                1);
  EXPECT_EQ(PartSeconds(merged, {.stage = 0}), 4 + 2);
}

TEST(StagePartsTest, SaysWhatCannotBePutTogether) {
  const auto different = MergeStages(ProfileOf("0,forward,1000,1,9\n0,backward,1000,1,9\n"
                                               "1,forward,1000,1,9\n1,backward_input,1000,1,9\n"
                                               "1,backward_weight,1000,1,9\n"),
                                     1);
  ASSERT_FALSE(different);
  EXPECT_EQ(different.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(different.error().message, Mentions("stages", "0", "1"));
  const std::string backwards =
      "0,backward,1400,1,9\n0,backward,1000,3,7\n1,backward,1400,1,9\n1,backward,1000,3,7\n";
  const auto single = MergeStages(ProfileOf("0,forward,1400,1,9\n0,forward,1200,2,8\n"
                                            "1,forward,1400,1,9\n1,forward,1000,3,7\n" +
                                            backwards),
                                  1);
  ASSERT_FALSE(single);
  EXPECT_THAT(single.error().message, Mentions("single"));
  const auto none =
      MergeStages(ProfileOf("0,forward,1400,1,9\n1,forward,1000,3,7\n" + backwards), 1);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, Mentions("no", "common"));
  // One knob is enough where there was no choice before.
  EXPECT_TRUE(MergeStages(ProfileOf("0,forward,1400,1,9\n1,forward,1400,3,7\n" + backwards), 1));
}

}  // namespace
}  // namespace perseus::analyse
