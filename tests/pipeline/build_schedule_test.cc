// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "perseus/schedule.h"
#include "pipeline/schedules.h"
#include "schedule_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using enum ComputationType;

Schedule Build(const ScheduleSpec& spec) {
  auto schedule = BuildSchedule(spec);
  EXPECT_TRUE(schedule) << schedule.error().message;
  return schedule ? *schedule : Schedule();
}

std::string BuildError(const ScheduleSpec& spec) {
  const auto schedule = BuildSchedule(spec);
  if (schedule) return "(no error)";
  EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidInput);
  return schedule.error().message;
}

TEST(BuildScheduleTest, GPipe) {
  EXPECT_EQ(FormatSchedule(Build({"gpipe", 2, 1, 3})),
            "0F0,0F1,0F2,0B0,0B1,0B2\r\n"
            "1F0,1F1,1F2,1B0,1B1,1B2\r\n");
}

TEST(BuildScheduleTest, OneForwardOneBackward) {
  EXPECT_EQ(FormatSchedule(Build({"1f1b", 3, 1, 4})),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\r\n"
            "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\r\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\r\n");
}

TEST(BuildScheduleTest, OneForwardOneBackwardWithFewerMicrobatchesThanRanks) {
  EXPECT_EQ(FormatSchedule(Build({"1f1b", 4, 1, 2})),
            "0F0,0F1,0B0,0B1\r\n"
            "1F0,1F1,1B0,1B1\r\n"
            "2F0,2F1,2B0,2B1\r\n"
            "3F0,3B0,3F1,3B1\r\n");
}

// As lowtime's EarlyRecomputation1F1B: tests/oracle/test_early_recomputation.py has all shapes.
TEST(BuildScheduleTest, EarlyRecomputation) {
  EXPECT_EQ(FormatSchedule(Build({"early-recomputation-1f1b", 3, 1, 4})),
            "0F0,0F1,0F2,(0R0;0B0)OVERLAP_F_B,0F3,(0R1;0B1)OVERLAP_F_B,0R2,0B2,0R3,0B3\r\n"
            "1F0,1F1,(1R0;1B0)OVERLAP_F_B,1F2,(1R1;1B1)OVERLAP_F_B,1F3,(1R2;1B2)OVERLAP_F_B,"
            "1R3,1B3\r\n"
            "2F0,(2R0;2B0)OVERLAP_F_B,2F1,(2R1;2B1)OVERLAP_F_B,2F2,(2R2;2B2)OVERLAP_F_B,2F3,"
            "(2R3;2B3)OVERLAP_F_B\r\n");
  // No rank but the last has forwards left when its first backward can run.
  EXPECT_EQ(FormatSchedule(Build({"EarlyRecomputation1F1B", 3, 1, 1})),
            "0F0,0R0,0B0\r\n1F0,1R0,1B0\r\n2F0,(2R0;2B0)OVERLAP_F_B\r\n");
}

TEST(BuildScheduleTest, LoopedBfs) {
  EXPECT_EQ(RankText(Build({"looped-bfs", 4, 2, 2}), 0), "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0");
}

TEST(BuildScheduleTest, Interleaved) {
  const std::string expected = "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3";
  EXPECT_EQ(RankText(Build({"interleaved-1f1b", 4, 2, 4}), 0), expected);
  EXPECT_EQ(RankText(Build({"megatron-interleaved", 4, 2, 4}), 0), expected);
}

TEST(BuildScheduleTest, MegatronEqualsTorchWhenMicrobatchesAreAMultipleOfRanks) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 24; m += p) {
        EXPECT_EQ(Build({"megatron-interleaved", p * v, v, m}).ranks,
                  Build({"interleaved-1f1b", p * v, v, m}).ranks)
            << p << " ranks, " << v << " virtual stages, " << m << " microbatches";
      }
    }
  }
}

TEST(BuildScheduleTest, MegatronGroupsMayEndWithASmallerOne) {
  // Groups of 3, then 2: the last group goes through both chunks in twos.
  EXPECT_EQ(RankText(Build({"megatron-interleaved", 4, 2, 5, 3}), 1),
            "1F0,1F1,1F2,3F0,3B0,3F1,3B1,3F2,3B2,1F3,1B0,1F4,1B1,3F3,1B2,3F4,3B3,3B4,1B3,1B4");
}

TEST(BuildScheduleTest, InterleavedZeroBubble) {
  EXPECT_EQ(RankText(Build({"interleaved-zero-bubble", 4, 2, 4}), 0),
            "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,2I3,2W3,0I2,"
            "0W2,0I3,0W3");
}

TEST(BuildScheduleTest, ZbvZeroBubble) {
  EXPECT_EQ(RankText(Build({"zbv-zero-bubble", 4, 2, 4}), 1),
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,"
            "1W2,2W3,1W3");
}

// The time goes with what is handed out, not with the ranks: each of these
// ranks would take seconds.
TEST(BuildScheduleTest, ZbvOfFewMicrobatchesOnManyRanksIsNoMoreWork) {
  constexpr int kRanks = 1 << 29;
  for (int i = 0; i < 1000; ++i) {
    const int rank = i * (kRanks / 1000);
    const pipeline::RankOrder order = pipeline::ZbvZeroBubbleOrder({kRanks, 2, 2}, rank);
    ASSERT_EQ(order.size(), 2U * 2U * 3U);
    EXPECT_EQ(order.front().id.stage, rank);
    EXPECT_EQ(order.back().id.microbatch, 1);
  }
}

TEST(BuildScheduleTest, DualPipeV) {
  const Schedule schedule = Build({"dualpipev", 4, 2, 4});
  EXPECT_EQ(RankText(schedule, 0),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
            "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3");
  EXPECT_EQ(RankText(schedule, 1),
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
            "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3");
}

TEST(BuildScheduleTest, StagesLoopOrTurnBack) {
  const Schedule loop = Build({"interleaved-1f1b", 6, 2, 3});
  const Schedule turn = Build({"zbv-zero-bubble", 6, 2, 3});
  const auto stages_of = [](const Schedule& schedule, int rank) {
    std::set<int> stages;
    for (const ScheduleStep& step : schedule.ranks[rank]) stages.insert(step.id.stage);
    return stages;
  };
  EXPECT_EQ(stages_of(loop, 1), (std::set<int>{1, 4}));
  EXPECT_EQ(stages_of(turn, 1), (std::set<int>{1, 4}));
  EXPECT_EQ(stages_of(loop, 0), (std::set<int>{0, 3}));
  EXPECT_EQ(stages_of(turn, 0), (std::set<int>{0, 5}));
}

// Every shape builds, which includes a run to the end, and holds each
// computation once.
TEST(BuildScheduleTest, EveryShapeIsCompleteAndRuns) {
  std::map<std::string, int> shapes;
  for (const ScheduleSpec& spec : AllShapes(6, 24, 4)) {
    const auto schedule = BuildSchedule(spec);
    ASSERT_TRUE(schedule) << schedule.error().message << " (" << spec.num_stages << " stages, "
                          << spec.virtual_stages << " virtual, " << spec.num_microbatches
                          << " microbatches, groups of " << spec.microbatch_group_size.value_or(0)
                          << ")";
    ++shapes[spec.name];
    std::map<ComputationType, int> count;
    for (const auto& order : schedule->ranks) {
      for (const ScheduleStep& step : order) {
        ++count[step.id.type];
        if (step.fused) ++count[step.fused->type];
      }
    }
    const int each = spec.num_stages * spec.num_microbatches;
    ASSERT_EQ(count[kForward], each);
    ASSERT_EQ(count[kBackward] + count[kBackwardInput], each);
    ASSERT_EQ(count[kBackwardInput], count[kBackwardWeight]);
    ASSERT_EQ(count[kRecompute], spec.name.starts_with("early") ? each : 0);
    const bool splits = spec.name.find("zero-bubble") != std::string::npos;
    if (splits) {
      ASSERT_EQ(count[kBackward], 0);
    } else if (spec.name != "dualpipev") {
      ASSERT_EQ(count[kBackwardInput], 0);
    }
  }
  EXPECT_EQ(shapes["gpipe"], 144);
  EXPECT_EQ(shapes["1f1b"], 144);
  EXPECT_EQ(shapes["early-recomputation-1f1b"], 144);
  EXPECT_EQ(shapes["looped-bfs"], 576);
  EXPECT_EQ(shapes["interleaved-1f1b"], 392);
  EXPECT_EQ(shapes["interleaved-zero-bubble"], 392);
  EXPECT_EQ(shapes["zbv-zero-bubble"], 144);
  EXPECT_EQ(shapes["dualpipev"], 108);
  EXPECT_GT(shapes["megatron-interleaved"], 576);
}

TEST(BuildScheduleTest, AcceptsPyTorchsNamesInAnyCase) {
  const std::map<std::string, std::string> spellings = {
      {"GPipe", "gpipe"},
      {"1F1B", "1f1b"},
      {"EarlyRecomputation1F1B", "early-recomputation-1f1b"},
      {"LoopedBFS", "looped-bfs"},
      {"Interleaved1F1B", "interleaved-1f1b"},
      {"InterleavedZeroBubble", "interleaved-zero-bubble"},
      {"ZBVZeroBubble", "zbv-zero-bubble"},
      {"DualPipeV", "dualpipev"},
      {"INTERLEAVED_1F1B", "interleaved-1f1b"},
      {"zbv", "zbv-zero-bubble"}};
  for (const auto& [spelling, canonical] : spellings) {
    EXPECT_EQ(CanonicalScheduleName(spelling), canonical) << spelling;
  }
  for (const std::string& name : ScheduleNames()) EXPECT_EQ(CanonicalScheduleName(name), name);
  EXPECT_EQ(CanonicalScheduleName(""), std::nullopt);
  EXPECT_EQ(CanonicalScheduleName("2f2b"), std::nullopt);
  EXPECT_EQ(Build({"DualPipeV", 4, 2, 4}).name, "dualpipev");
}

TEST(BuildScheduleTest, UnknownNameSuggestsTheNearestAndListsAll) {
  const std::string message = BuildError({"1f1", 4, 1, 4});
  EXPECT_THAT(message, Mentions("'1f1'", "'1f1b'"));
  for (const std::string& name : ScheduleNames()) EXPECT_THAT(message, Mentions(name));
  EXPECT_THAT(BuildError({"dualpipe", 4, 1, 4}), Mentions("'dualpipev'"));
  EXPECT_THAT(BuildError({std::string(100'000, 'x'), 4, 1, 4}), Mentions("unknown"));
}

TEST(BuildScheduleTest, ShapeErrorsSayWhichShapeWouldDo) {
  EXPECT_THAT(BuildError({"1f1b", 8, 2, 4}), Mentions("1", "interleaved-1f1b"));
  EXPECT_THAT(BuildError({"early-recomputation-1f1b", 8, 2, 4}), Mentions("1", "virtual_stages"));
  EXPECT_THAT(BuildError({"gpipe", 8, 2, 4}), Mentions("use", "1"));
  EXPECT_THAT(BuildError({"interleaved-1f1b", 8, 3, 4}), Mentions("8", "3"));
  EXPECT_THAT(BuildError({"zbv", 8, 1, 4}), Mentions("virtual_stages", "1:", "2"));
  EXPECT_THAT(BuildError({"dualpipev", 8, 4, 8}), Mentions("virtual_stages", "4:", "2"));
  EXPECT_THAT(BuildError({"dualpipev", 8, 2, 7}), Mentions("use", "8"));
  EXPECT_THAT(BuildError({"interleaved-1f1b", 8, 2, 13}), Mentions("3", "12", "15"));
  EXPECT_THAT(BuildError({"interleaved-zero-bubble", 8, 2, 13}), Mentions("12", "15"));
  EXPECT_THAT(BuildError({"megatron-interleaved", 8, 2, 9}), Mentions("1:", "8", "12"));
  EXPECT_THAT(BuildError({"megatron-interleaved", 8, 2, 9, 3}), Mentions("4", "9"));
  EXPECT_THAT(BuildError({"megatron-interleaved", 8, 2, 3}), Mentions("4", "microbatches"));
  EXPECT_THAT(BuildError({"1f1b", 8, 1, 9, 3}),
              Mentions("microbatch_group_size", "megatron-interleaved"));
}

// What an error proposes must be accepted.
TEST(BuildScheduleTest, ProposedShapesAreAccepted) {
  EXPECT_TRUE(BuildSchedule({"interleaved-1f1b", 8, 2, 12}));
  EXPECT_TRUE(BuildSchedule({"interleaved-1f1b", 8, 2, 15}));
  EXPECT_TRUE(BuildSchedule({"megatron-interleaved", 8, 2, 8}));
  EXPECT_TRUE(BuildSchedule({"megatron-interleaved", 8, 2, 12}));
}

TEST(BuildScheduleTest, RejectsAbsurdSizes) {
  EXPECT_THAT(BuildError({"1f1b", 0, 1, 4}), Mentions("1", "0"));
  EXPECT_THAT(BuildError({"1f1b", 4, 1, -1}), Mentions("microbatches", "1"));
  EXPECT_THAT(BuildError({"1f1b", 4, 0, 1}), Mentions("virtual_stages", "1"));
  EXPECT_THAT(BuildError({"1f1b", 2'000, 1, 1'001}), Mentions("4000000"));
  EXPECT_THAT(BuildError({"1f1b", 2'147'483'647, 1, 2'147'483'647}), Mentions("4000000"));
}

}  // namespace
}  // namespace perseus
