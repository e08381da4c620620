// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the server makes of the conditions that ranks measure: one set for the job.

#include "server/detect/conditions_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "perseus/job_file.h"
#include "server/conditions_testing.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"

namespace perseus::server {
namespace {

TEST(ConditionsWatch, ItsIntervalsHoldTheTruth) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int noise_held = 0;
  int latency_held = 0;
  int none_held = 0;
  constexpr int kTries = 300;
  for (int i = 0; i < kTries; ++i) {
    ConditionsWatch watch;
    for (int rank = 0; rank < 16; ++rank) {
      RankConditions told = Measured(0.01, 0.02 + 0.0003 * normal(random));
      told.noise_variance->value += told.noise_variance->error * normal(random);
      told.rank_noise_variance->value += told.rank_noise_variance->error * normal(random);
      // One rank hangs on another switch, and one has a broken clock.
      if (rank == 4) told.latency_seconds->value = 0.3;
      if (rank == 9) told.noise_variance->value = 1;
      watch.Take(rank, told);
    }
    const MeasuredConditions all = watch.Combined();
    const auto holds = [&](Condition which, double truth) {
      const MeasuredCondition& figure = all.Of(which);
      return std::abs(figure.value - truth) <= 2 * figure.error ? 1 : 0;
    };
    noise_held += holds(Condition::kNoise, 0.01);
    none_held += holds(Condition::kRankNoise, 0);
    latency_held += holds(Condition::kLatency, 0.02);
    EXPECT_EQ(all.Of(Condition::kNoise).ranks, 16);
    EXPECT_LT(all.Of(Condition::kNoise).error, 0.0005);
  }
  EXPECT_GE(noise_held, 0.9 * kTries);
  EXPECT_GE(none_held, 0.9 * kTries);
  EXPECT_GE(latency_held, 0.9 * kTries);
}

// 1.5 % of all computations take 5 % longer in the mean: what these add to the variance says that.
TEST(ConditionsWatch, RareComputationsAreShareAndLength) {
  constexpr double kLength = 0.05;
  constexpr double kShare = 0.015;
  constexpr double kVariance = kShare * 1.8 * kLength * kLength;
  ConditionsWatch watch;
  for (int rank = 0; rank < 4; ++rank) {
    RankConditions told = Measured(0.01, 0.02);
    told.rare_noise_variance = RankFigure{kVariance, 0.1 * kVariance};
    told.rare_noise_share = RankFigure{kShare, 0.1 * kShare};
    watch.Take(rank, told);
  }
  const MeasuredConditions all = watch.Combined();
  EXPECT_NEAR(all.Of(Condition::kRareNoise).value, kLength, 1e-12);
  EXPECT_NEAR(all.Of(Condition::kRareNoise).error, 0.1 / std::sqrt(2.0) / 2 * kLength, 1e-12);
  EXPECT_NEAR(all.Of(Condition::kRareNoiseShare).value, kShare, 1e-12);
  EXPECT_EQ(all.Of(Condition::kRareNoise).ranks, 4);
  const PlannedConditions plan = PlannedFor({}, all);
  JobFile settings;
  SetConditions(plan, &settings);
  EXPECT_NEAR(*settings.rare_noise, kLength, 1e-12);
  EXPECT_NEAR(*settings.rare_noise_share, kShare, 1e-12);
  JobFile planned_file;
  SetMeasured(all, &planned_file);
  EXPECT_EQ(planned_file.rare_noise_share, settings.rare_noise_share);
  JobFile given;
  given.rare_noise = given.rare_noise_share = 0.1;
  SetMeasured(all, &given);
  EXPECT_EQ(given.rare_noise, 0.1);
}

// Too few to tell: a share of none, and so no length either, which nobody could plan for alone.
TEST(ConditionsWatch, FewRareComputationsAreNone) {
  ConditionsWatch watch;
  RankConditions told = Measured(0.01, 0.02);
  told.rare_noise_variance = RankFigure{1e-8, 1e-9};
  told.rare_noise_share = RankFigure{1e-4, 1e-4};
  watch.Take(0, told);
  JobFile settings;
  const PlannedConditions plan = PlannedFor({}, watch.Combined());
  SetConditions(plan, &settings);
  EXPECT_EQ(settings.rare_noise, 0);
  EXPECT_EQ(settings.rare_noise_share, 0);
  // Those few being longer asks for no other plan; many of them do.
  told.rare_noise_variance = RankFigure{1e-6, 1e-7};
  told.rare_noise_share = RankFigure{1e-4, 0.55e-4};
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), kLongSincePlans));
  told.rare_noise_share = RankFigure{0.01, 1e-4};
  told.rare_noise_variance = RankFigure{1e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_TRUE(HaveMoved(plan, watch.Combined(), kLongSincePlans));
  // And a rank that tells nonsense asks for nothing that a plan could not be made for.
  told.rare_noise_variance = RankFigure{1e12, 0};
  told.rare_noise_share = RankFigure{1, 0};
  watch.Take(0, told);
  const MeasuredConditions all = watch.Combined();
  EXPECT_LE(all.Of(Condition::kRareNoise).value, 0.25);
  EXPECT_LE(all.Of(Condition::kRareNoiseShare).value, 0.25);
}

TEST(ConditionsWatch, SaysWhatIsNotKnown) {
  ConditionsWatch watch;
  EXPECT_FALSE(watch.TakeNews());
  EXPECT_EQ(watch.Combined(), MeasuredConditions());
  watch.Take(3, {.latency_seconds = RankFigure{0.02, 0.001}, .calls = 20});
  EXPECT_TRUE(watch.TakeNews());
  EXPECT_FALSE(watch.TakeNews());
  const MeasuredConditions all = watch.Combined();
  EXPECT_EQ(all.Of(Condition::kNoise).ranks, 0);
  EXPECT_EQ(all.Of(Condition::kLatency), (MeasuredCondition{0.02, 0.001, 1}));
  EXPECT_EQ(all.ranks(), 1);
  EXPECT_EQ(all.calls, 20);
}

}  // namespace
}  // namespace perseus::server
