// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "perseus/pipeline.h"
#include "schedule_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using enum ComputationType;

PipelineDag Dag(const ScheduleSpec& spec, const FixedTimes& fixed = {}) {
  auto dag = BuildDag(BuildSchedule(spec).value(), fixed);
  EXPECT_TRUE(dag) << dag.error().message;
  return dag ? *dag : PipelineDag();
}

int Find(const PipelineDag& dag, const ComputationId& id) {
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.computations[i].id == id || dag.computations[i].fused == id) return i;
  }
  ADD_FAILURE() << "no such computation";
  return 0;
}

// The delay of the arc between two computations, or nullopt where there is none.
std::optional<double> Delay(const PipelineDag& dag, const ComputationId& from,
                            const ComputationId& to) {
  const int target = Find(dag, to);
  for (int k = dag.first_precedence[target]; k < dag.first_precedence[target + 1]; ++k) {
    if (dag.precedences[k].from == Find(dag, from)) return dag.precedences[k].delay_seconds;
  }
  return std::nullopt;
}

TEST(BuildDagTest, TwoStagesTwoMicrobatches) {
  const PipelineDag dag = Dag({"1f1b", 2, 1, 2});
  EXPECT_EQ(dag.num_ranks, 2);
  EXPECT_EQ(dag.num_stages, 2);
  EXPECT_EQ(dag.num_microbatches, 2);
  EXPECT_EQ(dag.schedule_name, "1f1b");
  // Rank 0: F0 F1 B0 B1. Rank 1: F0 B0 F1 B1.
  const auto id = [](ComputationType type, int stage, int i) {
    return ComputationId{type, stage, i};
  };
  std::map<std::pair<ComputationId, ComputationId>, double> arcs;
  for (const Precedence& p : dag.precedences) {
    arcs[{dag.computations[p.from].id, dag.computations[p.to].id}] = p.delay_seconds;
  }
  const auto f = [&](int s, int i) { return id(kForward, s, i); };
  const auto b = [&](int s, int i) { return id(kBackward, s, i); };
  const std::map<std::pair<ComputationId, ComputationId>, double> expected = {
      {{f(0, 0), f(0, 1)}, 0}, {{f(0, 1), b(0, 0)}, 0}, {{b(0, 0), b(0, 1)}, 0},
      {{f(1, 0), b(1, 0)}, 0}, {{b(1, 0), f(1, 1)}, 0}, {{f(1, 1), b(1, 1)}, 0},
      {{f(0, 0), f(1, 0)}, 0}, {{f(0, 1), f(1, 1)}, 0}, {{b(1, 0), b(0, 0)}, 0},
      {{b(1, 1), b(0, 1)}, 0}};
  EXPECT_EQ(arcs, expected);
}

TEST(BuildDagTest, InvariantsOfEveryShape) {
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.25};
  fixed.data_loading_seconds = 0.5;
  for (const ScheduleSpec& spec : AllShapes(4, 9, 3)) {
    const PipelineDag dag = Dag(spec, fixed);
    ASSERT_EQ(dag.first_precedence.size(), dag.computations.size() + 1);
    ASSERT_EQ(dag.start_delay_seconds.size(), dag.computations.size());
    ASSERT_EQ(dag.first_precedence.front(), 0);
    ASSERT_EQ(dag.first_precedence.back(), static_cast<int>(dag.precedences.size()));
    for (int to = 0; to < dag.size(); ++to) {
      for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
        ASSERT_EQ(dag.precedences[k].to, to);
        ASSERT_LT(dag.precedences[k].from, to) << "not a topological order";
        if (k > dag.first_precedence[to]) {
          ASSERT_LT(dag.precedences[k - 1].from, dag.precedences[k].from);
        }
      }
    }
    for (int rank = 0; rank < dag.num_ranks; ++rank) {
      for (int position = 0; position < static_cast<int>(dag.rank_order[rank].size()); ++position) {
        const Computation& computation = dag.computations[dag.rank_order[rank][position]];
        ASSERT_EQ(computation.rank, rank);
        ASSERT_EQ(computation.position, position);
        if (position == 0) continue;
        const ComputationId& before = dag.computations[dag.rank_order[rank][position - 1]].id;
        ASSERT_TRUE(Delay(dag, before, computation.id)) << "ranks form chains";
      }
    }
  }
}

TEST(BuildDagTest, TransfersTakeTheDelayOfTheirBoundary) {
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.1, 0.2};
  const PipelineDag dag = Dag({"1f1b", 3, 1, 3}, fixed);
  EXPECT_EQ(Delay(dag, {kForward, 0, 1}, {kForward, 1, 1}), 0.1);
  EXPECT_EQ(Delay(dag, {kForward, 1, 1}, {kForward, 2, 1}), 0.2);
  EXPECT_EQ(Delay(dag, {kBackward, 2, 1}, {kBackward, 1, 1}), 0.2);
  EXPECT_EQ(Delay(dag, {kBackward, 1, 1}, {kBackward, 0, 1}), 0.1);
  EXPECT_EQ(Delay(dag, {kForward, 0, 0}, {kForward, 0, 1}), 0.0);
}

TEST(BuildDagTest, NoTransferWithinARank) {
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.1};
  // ZB-V on 2 ranks: stages 1 and 2 are on rank 1, its first two steps.
  const PipelineDag dag = Dag({"zbv", 4, 2, 4}, fixed);
  EXPECT_EQ(Delay(dag, {kForward, 1, 0}, {kForward, 2, 0}), 0.0);
  EXPECT_EQ(Delay(dag, {kForward, 2, 0}, {kForward, 3, 0}), 0.1);
}

TEST(BuildDagTest, DataLoadingIsBeforeEveryForwardOfStageZero) {
  FixedTimes fixed;
  fixed.data_loading_seconds = 0.5;
  fixed.iteration_overhead_seconds = 2;
  const PipelineDag dag = Dag({"1f1b", 2, 1, 3}, fixed);
  EXPECT_EQ(dag.start_delay_seconds[Find(dag, {kForward, 0, 0})], 0.5);
  EXPECT_EQ(dag.start_delay_seconds[Find(dag, {kForward, 1, 0})], 0.0);
  EXPECT_EQ(Delay(dag, {kForward, 0, 0}, {kForward, 0, 1}), 0.5);
  EXPECT_EQ(Delay(dag, {kBackward, 0, 0}, {kForward, 0, 2}), 0.5);
  EXPECT_EQ(Delay(dag, {kBackward, 0, 1}, {kBackward, 0, 2}), 0.0);
  EXPECT_EQ(dag.end_delay_seconds, 2);
}

TEST(BuildDagTest, FusedHalvesWaitAndAreWaitedForTogether) {
  const PipelineDag dag = Dag({"dualpipev", 4, 2, 4});
  // Rank 0 fuses 0F3 with 3B1; rank 1 holds stages 1 and 2.
  const int fused = Find(dag, {kForward, 0, 3});
  ASSERT_EQ(dag.computations[fused].fused, (ComputationId{kBackward, 3, 1}));
  EXPECT_TRUE(Delay(dag, {kForward, 0, 3}, {kForward, 1, 3}));
  EXPECT_TRUE(Delay(dag, {kBackward, 3, 1}, {kBackward, 2, 1}));
  EXPECT_EQ(Find(dag, {kBackward, 3, 1}), fused);
}

TEST(BuildDagTest, OnlyAnEarlyRecomputeDoesNotWaitForTheGradient) {
  const PipelineDag dag = Dag({"early-recomputation-1f1b", 2, 1, 2});
  EXPECT_TRUE(Delay(dag, {kBackward, 1, 0}, {kRecompute, 0, 0}));  // Part of its backward.
  EXPECT_TRUE(Delay(dag, {kBackward, 1, 1}, {kBackward, 0, 1}));
  EXPECT_FALSE(Delay(dag, {kBackward, 1, 1}, {kRecompute, 0, 1}));
  EXPECT_TRUE(Delay(dag, {kRecompute, 0, 1}, {kBackward, 0, 1}));
}

TEST(BuildDagTest, ParallelArcsAreOneWithTheLargerDelay) {
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.1, 0.2, 0.3};
  const auto valid = ParseSchedule(
      "0F0,0F1,3F0,3B0,(3F1;0B0)OVERLAP_F_B,3B1,0B1\n"
      "1F0,2F0,1F1,2B0,(2F1;1B0)OVERLAP_F_B,2B1,1B1\n",
      "valid.csv");
  ASSERT_TRUE(valid) << valid.error().message;
  const PipelineDag dag = BuildDag(*valid, fixed).value();
  // (2F1;1B0) -> (3F1;0B0) by boundary 2 (0.3) and boundary 0 (0.1).
  EXPECT_EQ(Delay(dag, {kForward, 2, 1}, {kForward, 3, 1}), 0.3);
}

TEST(BuildDagTest, RefusesBadFixedTimes) {
  const Schedule schedule = BuildSchedule({"1f1b", 4, 1, 4}).value();
  const auto error_of = [&](std::vector<double> comm, double loading, double overhead) {
    const auto dag = BuildDag(schedule, {std::move(comm), loading, overhead});
    return dag ? "(no error)" : dag.error().message;
  };
  EXPECT_EQ(error_of({}, 0, 0), "(no error)");
  EXPECT_EQ(error_of({1, 2, 3}, 0, 0), "(no error)");
  EXPECT_THAT(error_of({1, 2}, 0, 0), Mentions("3"));
  EXPECT_THAT(error_of({-1}, 0, 0), Mentions("-1", "seconds"));
  EXPECT_THAT(error_of({std::nan("")}, 0, 0), Mentions("communication", "nan"));
  EXPECT_THAT(error_of({}, -2, 0), Mentions("-2", "seconds"));
  EXPECT_THAT(error_of({}, 0, std::numeric_limits<double>::infinity()),
              Mentions("overhead", "inf"));
}

TEST(BuildDagTest, RefusesADeadlock) {
  Schedule schedule = BuildSchedule({"1f1b", 2, 1, 2}).value();
  std::swap(schedule.ranks[1][1], schedule.ranks[1][2]);
  std::swap(schedule.ranks[0][1], schedule.ranks[0][2]);
  const auto dag = BuildDag(schedule, {});
  ASSERT_FALSE(dag);
  EXPECT_THAT(dag.error().message, Mentions("deadlocks:"));
}

TEST(BuildDagTest, VeryLargePipelines) {
  const PipelineDag dag = Dag({"1f1b", 64, 1, 512});
  EXPECT_EQ(dag.size(), 65'536);
  // Chains of 64 ranks and two directions of transfers over 63 boundaries.
  EXPECT_EQ(dag.precedences.size(), 64u * 1023 + 2u * 63 * 512);
}

}  // namespace
}  // namespace perseus
