// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "perseus/schedule.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using enum ComputationType;

ScheduleStep F(int stage, int microbatch) { return {{kForward, stage, microbatch}, {}}; }
ScheduleStep B(int stage, int microbatch) { return {{kBackward, stage, microbatch}, {}}; }
ScheduleStep I(int stage, int microbatch) { return {{kBackwardInput, stage, microbatch}, {}}; }
ScheduleStep W(int stage, int microbatch) { return {{kBackwardWeight, stage, microbatch}, {}}; }
ScheduleStep R(int stage, int microbatch) { return {{kRecompute, stage, microbatch}, {}}; }
ScheduleStep Fuse(const ScheduleStep& forward, const ScheduleStep& backward) {
  return {forward.id, backward.id};
}

std::string ErrorOf(int num_stages, int num_microbatches,
                    std::vector<std::vector<ScheduleStep>> ranks) {
  Schedule schedule;
  schedule.num_ranks = static_cast<int>(ranks.size());
  schedule.num_stages = num_stages;
  schedule.num_microbatches = num_microbatches;
  schedule.ranks = std::move(ranks);
  const auto valid = ValidateSchedule(schedule);
  if (valid) return "";
  EXPECT_EQ(valid.error().code, ErrorCode::kInvalidInput);
  return valid.error().message;
}

TEST(ValidateScheduleTest, AcceptsEveryKindOfBackward) {
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), B(0, 0), F(0, 1), I(0, 1), W(0, 1)}}), "");
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), Fuse(F(0, 1), B(0, 0)), B(0, 1)}}), "");
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), Fuse(F(0, 1), I(0, 0)), B(0, 1), W(0, 0)}}), "");
}

TEST(ValidateScheduleTest, AcceptsUnevenStages) {
  EXPECT_EQ(ErrorOf(3, 1, {{F(0, 0), F(2, 0), B(2, 0), B(0, 0)}, {F(1, 0), B(1, 0)}}), "");
}

TEST(ValidateScheduleTest, NamesWhatIsMissing) {
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), B(0, 0), B(0, 1)}}),
            "0F1 is missing: each of the 1 stages must run microbatches 0 to 1 forward");
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), F(0, 1), B(0, 0)}}), "0B1 is missing: 0F1 needs it");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), I(0, 0)}}), "0W0 is missing: 0I0 needs it");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0)}}), "0B0 is missing: 0F0 needs it");
  // No allocation per (stage, microbatch) before the counts are known.
  EXPECT_EQ(ErrorOf(2'000'000'000, 2'000'000'000, {{F(0, 0), B(0, 0)}}),
            "0F1 is missing: each of the 2000000000 stages must run microbatches 0 to 1999999999 "
            "forward");
}

TEST(ValidateScheduleTest, NamesWhatIsThereTwice) {
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), F(0, 0), B(0, 0)}}), "0F0 is in the schedule twice");
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), F(0, 0), B(0, 0), B(0, 1)}}),
            "rank 0 has 0F0 after 0F0: it must run only once");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), B(0, 0), I(0, 0), W(0, 0)}}),
            "rank 0 has 0I0 after 0B0: it must run only once");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), B(0, 0), W(0, 0)}}),
            "0B0 is whole, but there is 0W0 too: a backward is either B or I and W");
}

TEST(ValidateScheduleTest, OneRankPerStage) {
  EXPECT_EQ(ErrorOf(1, 2, {{F(0, 0), B(0, 0)}, {F(0, 1), B(0, 1)}}),
            "stage 0 is on rank 0 but rank 1 has 0F1: a stage must stay on one rank");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), B(0, 0)}, {}}),
            "rank 1 has no computations: every rank of a pipeline holds at least one stage");
}

TEST(ValidateScheduleTest, OrderWithinAStage) {
  EXPECT_EQ(ErrorOf(1, 1, {{B(0, 0), F(0, 0)}}), "0F0 does not come before 0B0 on their rank");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), W(0, 0), I(0, 0)}}),
            "0I0 does not come before 0W0 on their rank");
  EXPECT_EQ(ErrorOf(1, 1, {{Fuse(F(0, 0), B(0, 0))}}),
            "0F0 does not come before 0B0 on their rank");
}

TEST(ValidateScheduleTest, OnlyForwardOrRecomputeWithBackwardIsFused) {
  EXPECT_EQ(ErrorOf(1, 2, {{Fuse(F(0, 0), F(0, 1)), B(0, 0), B(0, 1)}}),
            "rank 0 fuses (0F0;0F1)OVERLAP_F_B: only a forward with a backward (F;B) or (F;I) can "
            "be, and a recompute (R;B) or (R;I) with its own");
  EXPECT_THAT(ErrorOf(1, 2, {{F(0, 0), F(0, 1), B(0, 0), Fuse(R(0, 0), B(0, 1))}}),
              Mentions("fuses", "(0R0;0B1)OVERLAP_F_B"));
}

TEST(ValidateScheduleTest, ARecomputeIsBetweenItsForwardAndItsBackward) {
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), R(0, 0), B(0, 0)}}), "");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), R(0, 0), I(0, 0), W(0, 0)}}), "");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), Fuse(R(0, 0), I(0, 0)), W(0, 0)}}), "");
  EXPECT_EQ(ErrorOf(1, 1, {{R(0, 0), F(0, 0), B(0, 0)}}),
            "0F0 does not come before 0R0 on their rank");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), B(0, 0), R(0, 0)}}),
            "0R0 does not come before 0B0 on their rank");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), I(0, 0), R(0, 0), W(0, 0)}}),
            "0R0 does not come before 0I0 on their rank");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), R(0, 0), Fuse(R(0, 0), B(0, 0))}}),
            "rank 0 has 0R0 after 0R0: it must run only once");
}

TEST(ValidateScheduleTest, NumbersOutOfRange) {
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, 0), B(0, 0), F(1, 0)}}),
            "rank 0 has 1F0, outside of stages 0 to 0 and microbatches 0 to 0");
  EXPECT_EQ(ErrorOf(1, 1, {{F(0, -1), B(0, 0)}}),
            "rank 0 has 0F-1, outside of stages 0 to 0 and microbatches 0 to 0");
  EXPECT_EQ(ErrorOf(0, 1, {{F(0, 0)}}),
            "a schedule needs at least one rank, one stage and one microbatch, but this one has 1, "
            "0 and 1");
  Schedule schedule;
  schedule.num_ranks = 2;
  schedule.num_stages = schedule.num_microbatches = 1;
  schedule.ranks = {{F(0, 0), B(0, 0)}};
  EXPECT_EQ(ValidateSchedule(schedule).error().message,
            "the schedule says 2 ranks but has the orders of 1");
}

TEST(ValidateScheduleTest, DeadlockNamesTheRanksThatWaitInACircle) {
  EXPECT_EQ(
      ErrorOf(2, 2, {{F(0, 0), B(0, 0), F(0, 1), B(0, 1)}, {F(1, 0), F(1, 1), B(1, 0), B(1, 1)}}),
      "the schedule deadlocks: rank 0 waits at 0B0 for 1B0 of rank 1, rank 1 waits at 1F1 for "
      "0F1 of rank 0");
  // Rank 2 is stuck too, but is not in the circle.
  EXPECT_EQ(
      ErrorOf(3, 2,
              {{F(0, 0), F(0, 1), B(0, 0), B(0, 1)},
               {F(1, 0), B(1, 0), F(1, 1), B(1, 1)},
               {F(2, 0), F(2, 1), B(2, 0), B(2, 1)}}),
      "the schedule deadlocks: rank 1 waits at 1B0 for 2B0 of rank 2, rank 2 waits at 2F1 for "
      "1F1 of rank 1");
}

TEST(ValidateScheduleTest, DeadlockOfARankWithItself) {
  // Stage 1 before stage 0 on the same rank.
  EXPECT_EQ(ErrorOf(2, 1, {{F(1, 0), F(0, 0), B(1, 0), B(0, 0)}}),
            "the schedule deadlocks: rank 0 waits at 1F0 for 0F0 of rank 0");
}

TEST(ValidateScheduleTest, DeadlockOfFusedHalves) {
  // Each fused step holds the forward that the other's waits for.
  const std::string message = ErrorOf(
      2, 2,
      {{F(0, 0), Fuse(F(0, 1), B(0, 0)), B(0, 1)}, {F(1, 0), Fuse(F(1, 1), B(1, 0)), B(1, 1)}});
  EXPECT_EQ(message,
            "the schedule deadlocks: rank 0 waits at (0F1;0B0)OVERLAP_F_B for "
            "(1F1;1B0)OVERLAP_F_B of rank 1, rank 1 waits at (1F1;1B0)OVERLAP_F_B for "
            "(0F1;0B0)OVERLAP_F_B of rank 0");
}

}  // namespace
}  // namespace perseus
