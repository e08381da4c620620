// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
namespace {

using emulator_testing::TinyPipeline;
using testing::ElementsAre;
using testing::IsEmpty;

EmulationSpec SpecOf(int pipelines, std::int64_t iterations) {
  EmulationSpec spec;
  spec.pipelines = pipelines;
  spec.iterations = iterations;
  spec.target_seconds = 6;
  return spec;
}

TEST(StragglerCalendarTest, StragglersComeAndGo) {
  const CostedPipeline pipeline = TinyPipeline(2);
  EmulationSpec spec = SpecOf(3, 6);
  spec.stragglers = {{.value = 2, .pipeline = 2, .first_iteration = 1, .iterations = 2},
                     {.value = 3, .pipeline = 1, .first_iteration = 2},
                     {.value = 4,
                      .pipeline = 2,
                      .rank = 1,
                      .first_iteration = 3,
                      .iterations = std::numeric_limits<std::int64_t>::max()}};
  StragglerCalendar calendar(pipeline, spec);
  const std::vector<std::set<int>> straggling = {{}, {2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}};
  const std::vector<std::vector<int>> changed = {{}, {2}, {1}, {2}, {}, {}};
  for (int n = 0; n < 6; ++n) {
    calendar.Advance(6 * n, 6);
    EXPECT_EQ(calendar.straggling(), straggling[n]) << n;
    EXPECT_EQ(calendar.changed(), changed[n]) << n;
    if (n == 2) {
      EXPECT_THAT(calendar.LimitsOf(2), ElementsAre(RankLimits{.slow = 2}, RankLimits{.slow = 2}));
    }
  }
  EXPECT_THAT(calendar.LimitsOf(0), IsEmpty());
  EXPECT_THAT(calendar.LimitsOf(2), ElementsAre(RankLimits{}, RankLimits{.slow = 4}));
  EXPECT_EQ(calendar.came(), 3);
}

TEST(StragglerCalendarTest, SeveralMultiplyOrTheStrictestCounts) {
  const CostedPipeline pipeline = TinyPipeline(2);
  EmulationSpec spec = SpecOf(1, 1);
  using enum StragglerKind;
  using Rank = std::optional<int>;
  for (const auto& [kind, value, rank] :
       {std::tuple(kSlow, 2.0, Rank()), std::tuple(kSlow, 1.5, Rank(1)),
        std::tuple(kClockCap, 900.0, Rank()), std::tuple(kClockCap, 800.0, Rank(0)),
        std::tuple(kPowerCap, 90.0, Rank(0)), std::tuple(kPowerCap, 95.0, Rank()),
        std::tuple(kDataStall, 1.0, Rank()), std::tuple(kDataStall, 3.0, Rank(0)),
        std::tuple(kDataStall, 2.0, Rank(0))}) {
    spec.stragglers.push_back({.kind = kind, .value = value, .rank = rank});
  }
  StragglerCalendar calendar(pipeline, spec);
  calendar.Advance(0, 6);
  EXPECT_THAT(
      calendar.LimitsOf(0),
      ElementsAre(RankLimits{.slow = 2, .most_mhz = 800, .most_watts = 90, .stall_seconds = 3},
                  RankLimits{.slow = 3, .most_mhz = 900, .most_watts = 95, .stall_seconds = 0}));
}

TEST(StragglerCalendarTest, RandomOnesComeAtTheirRate) {
  CostedPipeline pipeline = TinyPipeline(2);
  pipeline.tensor_parallel = 4;
  EmulationSpec spec = SpecOf(50, 100);
  // 0.1 per rank and iteration of 6 s, each for one iteration.
  spec.random_stragglers = {.share_of_gpus_per_day = 0.1 / 4 * 86400 / 6, .duration_seconds = 6};
  StragglerCalendar calendar(pipeline, spec);
  std::int64_t straggling = 0;
  for (int n = 0; n < 100; ++n) {
    calendar.Advance(6 * n, 6);
    straggling += static_cast<std::int64_t>(calendar.straggling().size());
  }
  // Ten standard deviations would be 300; the draws are always the same ones.
  EXPECT_NEAR(static_cast<double>(calendar.came()), 1000, 100);
  EXPECT_NEAR(static_cast<double>(straggling), 5000 * 0.19, 100);
}

TEST(StragglerCalendarTest, RandomOnesLastUntilTheFirstIterationAfterTheirTime) {
  const CostedPipeline pipeline = TinyPipeline(1);
  EmulationSpec spec = SpecOf(1, 12);
  // Certain: one at once, and another as soon as it has gone.
  spec.random_stragglers = {.share_of_gpus_per_day = 1e6, .duration_seconds = 15};
  StragglerCalendar calendar(pipeline, spec);
  for (int n = 0; n < 12; ++n) {
    calendar.Advance(6 * n, 6);
    EXPECT_EQ(calendar.changed().empty(), n % 3 != 0) << n;
    EXPECT_THAT(calendar.LimitsOf(0), ElementsAre(RankLimits{.slow = 1.2}));
  }
  EXPECT_EQ(calendar.came(), 4);
}

}  // namespace
}  // namespace perseus::emulate
