// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perseus/schedule.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using ::testing::HasSubstr;

std::string Draw(const ScheduleSpec& spec) { return DrawSchedule(BuildSchedule(spec).value()); }

TEST(DrawScheduleTest, OneStagePerRank) {
  EXPECT_EQ(Draw({"1f1b", 2, 1, 3}),
            "rank 0  F0 F1 .  .  B0--- F2 B1--- .  B2---\n"
            "rank 1  .  F0 B0--- F1 B1--- F2 B2--- .  .\n"
            "        0                             10\n"
            "        F forward 1 unit, B backward 2, I input and W weight gradient 1 each; '.' "
            "idle: 25.0 % of 12 units\n");
}

TEST(DrawScheduleTest, StagesAreNamedWhereARankHasSeveral) {
  EXPECT_THAT(Draw({"zbv", 4, 2, 2}),
              HasSubstr("rank 0  0F0 0F1 .   3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 .   0I1 0W1\n"));
}

TEST(DrawScheduleTest, FusedStepsAreOneBox) {
  EXPECT_THAT(Draw({"dualpipev", 2, 2, 3}), Mentions("0F2+1B1----"));
}

TEST(DrawScheduleTest, EarlyRecomputation) {
  EXPECT_THAT(Draw({"early-recomputation-1f1b", 2, 1, 2}),
              AllOf(HasSubstr("R0+B0--- R1 B1---\n"), HasSubstr("R recompute 1")));
}

TEST(DrawScheduleTest, WideNumbersKeepTheColumns) {
  const std::string drawing = Draw({"1f1b", 11, 1, 101});
  EXPECT_THAT(drawing, HasSubstr("\nrank  1  .    F0-- F1-- F2--"));
  EXPECT_THAT(drawing, Mentions("B99------", "F100", "B100-----"));
}

TEST(DrawScheduleTest, TooLargeIsASentence) {
  EXPECT_EQ(Draw({"gpipe", 100'000, 1, 2}),
            "gpipe is too large to draw: 100000 ranks, 300003 time units\n");
}

TEST(DrawScheduleTest, AnIllegalScheduleIsItsError) {
  EXPECT_THAT(DrawSchedule(Schedule()), Mentions("rank,"));
}

}  // namespace
}  // namespace perseus
