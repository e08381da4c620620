// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Iterations of ranks whose clocks began at known times, on one clock again.

#include "server/planning/measured_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perseus/computation.h"
#include "perseus/pipeline.h"
#include "perseus/schedule.h"
#include "server/planning/measured_gaps.h"

namespace perseus::server {
namespace {

constexpr double kForth = 0.0018;
constexpr double kBack = 0.0002;

// What goes to the next stage takes longer than what comes back.
PipelineDag PipelineOf(const std::string& schedule, int ranks, int virtual_stages) {
  const ScheduleSpec spec = {.name = schedule,
                             .num_stages = ranks * virtual_stages,
                             .virtual_stages = virtual_stages,
                             .num_microbatches = 8};
  PipelineDag dag = BuildDag(BuildSchedule(spec).value(), {}).value();
  for (Precedence& precedence : dag.precedences) {
    const Computation& from = dag.computations[static_cast<std::size_t>(precedence.from)];
    const Computation& to = dag.computations[static_cast<std::size_t>(precedence.to)];
    if (from.rank == to.rank) continue;
    precedence.delay_seconds = from.id.stage < to.id.stage ? kForth : kBack;
  }
  return dag;
}

// An iteration as it was, and as its ranks see it, whose clocks begin when theirs does.
struct Seen {
  Timing truth;
  std::vector<double> began = {};  // [rank]
  std::vector<std::vector<RowSpan>> ranks = {};
};

Seen See(const PipelineDag& dag, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(1, 0.01);
  std::uniform_real_distribution<double> earlier(0, 0.5);
  std::vector<double> durations;
  for (const Computation& computation : dag.computations) {
    const double seconds = computation.id.type == ComputationType::kForward ? 0.01 : 0.02;
    durations.push_back(seconds * noise(random));
  }
  Seen seen = {.truth = Replay(dag, durations)};
  for (const std::vector<int>& order : dag.rank_order) {
    seen.began.push_back(-earlier(random));
    std::vector<RowSpan>& rows = seen.ranks.emplace_back();
    for (const int i : order) {
      const auto at = static_cast<std::size_t>(i);
      rows.push_back({.begin_seconds = seen.truth.start_seconds[at] - seen.began.back(),
                      .end_seconds = seen.truth.end_seconds[at] - seen.began.back()});
    }
  }
  return seen;
}

TEST(OffsetsOf, AreWithinTheirErrorsInAnySchedule) {
  struct Case {
    const char* schedule;
    int ranks;
    int virtual_stages;
  };
  for (const Case& each : {Case{"1f1b", 2, 1}, Case{"1f1b", 8, 1}, Case{"gpipe", 4, 1},
                           Case{"interleaved-1f1b", 4, 2}, Case{"zbv-zero-bubble", 4, 2}}) {
    const PipelineDag dag = PipelineOf(each.schedule, each.ranks, each.virtual_stages);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(std::string(each.schedule) + " " + std::to_string(seed));
      const Seen seen = See(dag, seed);
      const auto offsets = OffsetsOf(dag, seen.ranks);
      ASSERT_EQ(offsets.size(), seen.began.size());
      for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
        ASSERT_TRUE(offsets[rank]);
        const double truth = seen.began[rank] - seen.began[0];
        EXPECT_LE(std::abs(offsets[rank]->seconds - truth), offsets[rank]->error_seconds + 1e-12);
        // Ranks wait for each other, so that the bounds are a way there and back apart.
        EXPECT_LE(offsets[rank]->error_seconds,
                  static_cast<double>(rank) * (kForth + kBack) / 2 + 1e-12);
      }
      EXPECT_EQ(offsets[0]->error_seconds, 0);
      EXPECT_GT(offsets[1]->error_seconds, 0);
    }
  }
}

TEST(OffsetsOf, AreNoneWhereNothingComesBack) {
  PipelineDag dag = PipelineOf("1f1b", 3, 1);
  const Seen seen = See(dag, 1);
  std::erase_if(dag.precedences, [&](const Precedence& precedence) {
    return dag.computations[static_cast<std::size_t>(precedence.from)].rank == 2 &&
           dag.computations[static_cast<std::size_t>(precedence.to)].rank == 1;
  });
  const auto offsets = OffsetsOf(dag, seen.ranks);
  EXPECT_TRUE(offsets[0]);
  EXPECT_TRUE(offsets[1]);
  EXPECT_FALSE(offsets[2]);
  EXPECT_TRUE(OffsetsOf(dag, {}).empty());
}

// Clocks that run at different rates, or times of the host: a result before it was made.
TEST(OffsetsOf, SayHowFarTimesContradictEachOther) {
  const PipelineDag dag = PipelineOf("1f1b", 2, 1);
  Seen seen = See(dag, 2);
  for (RowSpan& row : seen.ranks[1]) {
    row.begin_seconds -= 0.004;
    row.end_seconds += 0.004;
  }
  const auto offsets = OffsetsOf(dag, seen.ranks);
  ASSERT_TRUE(offsets[1]);
  EXPECT_NEAR(offsets[1]->error_seconds, 0.004 - (kForth + kBack) / 2, 1e-9);
}

TEST(TimelineOf, HasAllRanksOnOneClock) {
  const PipelineDag dag = PipelineOf("1f1b", 4, 1);
  const Seen seen = See(dag, 3);
  std::vector<double> clocks;
  for (int i = 0; i < dag.size(); ++i) clocks.push_back(1000 + i);
  const MeasuredTimeline timeline = TimelineOf(dag, seen.ranks, clocks);
  ASSERT_EQ(timeline.ranks.size(), 4U);
  EXPECT_EQ(timeline.size(), dag.size());
  const double error = timeline.error_seconds().value();
  EXPECT_NEAR(error, 3 * (kForth + kBack) / 2, 1e-9);
  EXPECT_NEAR(timeline.seconds(), seen.truth.iteration_time_seconds, error);
  double first = 1;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t position = 0; position < dag.rank_order[rank].size(); ++position) {
      const auto i = static_cast<std::size_t>(dag.rank_order[rank][position]);
      const TimedComputation& each = timeline.ranks[rank].computations[position];
      EXPECT_EQ(each.id, dag.computations[i].id);
      EXPECT_EQ(each.clock_mhz, clocks[i]);
      EXPECT_NEAR(each.start_seconds, seen.truth.start_seconds[i], error + 1e-9);
      EXPECT_NEAR(each.duration_seconds, seen.truth.end_seconds[i] - seen.truth.start_seconds[i],
                  1e-9);
      first = std::min(first, each.start_seconds);
    }
  }
  EXPECT_EQ(first, 0);
}

TEST(TimelineOf, DoesNotGuessWhereARankIsNotLinedUp) {
  PipelineDag dag = PipelineOf("1f1b", 2, 1);
  const Seen seen = See(dag, 4);
  dag.precedences.clear();
  const MeasuredTimeline timeline =
      TimelineOf(dag, seen.ranks, std::vector<double>(static_cast<std::size_t>(dag.size()), 1400));
  EXPECT_FALSE(timeline.error_seconds());
  // Each since its own iteration began.
  const double apart = timeline.ranks[1].computations[0].start_seconds -
                       timeline.ranks[0].computations[0].start_seconds;
  EXPECT_NEAR(apart, seen.ranks[1][0].begin_seconds - seen.ranks[0][0].begin_seconds, 1e-9);
}

}  // namespace
}  // namespace perseus::server
