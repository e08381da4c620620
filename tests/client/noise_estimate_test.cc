// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a client makes of the times of its computations, and of its clock calls: times are drawn
// with a noise that is known, so the intervals must hold the truth as often as they say.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "client/follower_testing.h"
#include "client/rank_conditions.h"

namespace perseus::client {
namespace {

using Times = std::vector<NoiseEstimate::Time>;

struct Truth {
  double noise = 0;
  double rank_noise = 0;
  double correlation = 0;
  int rows = 32;
  int iterations = 200;
  double unseen = 0;    // Share of computations whose clock was late.
  double outliers = 0;  // Share of computations that take up to six times as long.
  double slow = 0;      // Share of iterations that take half as long again.
};

class NoisyTrainer {
 public:
  explicit NoisyTrainer(std::uint64_t seed) : random_(seed) {}

  double Uniform(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  bool Happens(double share) { return Uniform(0, 1) < share; }

  void Train(const Truth& truth, NoiseEstimate* estimate) {
    std::vector<double> work(static_cast<std::size_t>(truth.rows));
    for (double& ns : work) ns = Uniform(10e6, 40e6);
    for (int i = 0; i < truth.iterations; ++i) {
      estimate->AddIteration(i, 1, Iteration(truth, work));
    }
  }

 private:
  Times Iteration(const Truth& truth, const std::vector<double>& work) {
    const double all =
        (1 + truth.rank_noise * normal_(random_)) * (Happens(truth.slow) ? 1.5 : 1.0);
    double draw = normal_(random_);
    Times times;
    for (std::size_t row = 0; row < work.size(); ++row) {
      double ns = work[row] * all * (1 + truth.noise * draw);
      if (Happens(truth.outliers)) ns *= Uniform(1.3, 6);
      if (!Happens(truth.unseen)) times.push_back({static_cast<std::ptrdiff_t>(row), 1000, ns});
      draw = truth.correlation * draw +
             std::sqrt(1 - truth.correlation * truth.correlation) * normal_(random_);
    }
    return times;
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

struct Coverage {
  int held = 0;
  int all = 0;

  void Add(const Estimated& figure, double truth) {
    ++all;
    if (std::abs(figure.value - truth) <= 2 * figure.error) ++held;
  }
  double share() const { return static_cast<double>(held) / all; }
};

TEST(NoiseEstimate, IntervalsHoldTheTruthAsOftenAsTheySay) {
  NoisyTrainer trainer(7);
  Coverage variance;
  Coverage rank_variance;
  Coverage correlation;
  for (int i = 0; i < 300; ++i) {
    const int rows = 8 << (i % 4);
    Truth truth{.noise = trainer.Uniform(0.002, 0.03),
                .rank_noise = i % 2 == 0 ? 0 : trainer.Uniform(0, 0.02),
                .correlation = i % 3 == 0 ? 0 : trainer.Uniform(0, rows < 16 ? 0.5 : 0.8),
                .rows = rows,
                .iterations = 60 + i,
                .unseen = 0.2,
                .outliers = i % 5 == 0 ? 0.005 : 0,
                .slow = i % 5 == 0 ? 0.02 : 0};
    NoiseEstimate estimate;
    trainer.Train(truth, &estimate);
    const auto figures = estimate.Figures();
    ASSERT_TRUE(figures);
    variance.Add(figures->variance, truth.noise * truth.noise);
    rank_variance.Add(figures->rank_variance, truth.rank_noise * truth.rank_noise);
    if (figures->correlation) correlation.Add(*figures->correlation, truth.correlation);
  }
  // Of intervals of two standard errors, 95 % would; of 300, 92 % may.
  EXPECT_GE(variance.share(), 0.92);
  EXPECT_GE(rank_variance.share(), 0.92);
  EXPECT_GE(correlation.share(), 0.92);
  EXPECT_GE(correlation.all, 280);
}

TEST(NoiseEstimate, ErrorsShrinkToFewPercent) {
  NoisyTrainer trainer(3);
  NoiseEstimate estimate;
  trainer.Train({.noise = 0.01, .rank_noise = 0.01, .correlation = 0.4, .iterations = 300},
                &estimate);
  const auto figures = estimate.Figures();
  ASSERT_TRUE(figures);
  EXPECT_LT(figures->variance.error, 0.1 * 1e-4);
  EXPECT_LT(figures->rank_variance.error, 0.25 * 1e-4);
  EXPECT_LT(figures->correlation->error, 0.08);
  EXPECT_EQ(figures->iterations, 256);  // The newest.
}

TEST(NoiseEstimate, NeitherDriftNorWorkNorPausesAreNoise) {
  NoiseEstimate estimate;
  NoisyTrainer trainer(5);
  for (int i = 0; i < 200; ++i) {
    Times times;
    for (int row = 0; row < 32; ++row) {
      const double drift = 1 + 0.05 * i / 200;
      const double pause = i % 40 == 7 && row == 9 ? 20 : 1;
      const double checkpoint = i % 50 == 20 ? 1.3 : 1;
      times.push_back(
          {row, 1000,
           (10e6 + 1e6 * row) * drift * pause * checkpoint * (1 + trainer.Uniform(-1e-4, 1e-4))});
    }
    estimate.AddIteration(i, 1, std::move(times));
  }
  const auto figures = estimate.Figures();
  ASSERT_TRUE(figures);
  EXPECT_LT(std::sqrt(figures->variance.value), 1e-4);
  EXPECT_LT(std::sqrt(std::max(0.0, figures->rank_variance.value)), 3e-4);
}

TEST(NoiseEstimate, RareLongComputationsAreAFigureOfTheirOwn) {
  constexpr double kShare = 0.01;
  constexpr double kLonger = 0.15;
  constexpr double kRare = kShare * kLonger * kLonger;
  Coverage rare;
  Coverage share;
  Coverage variance;
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::normal_distribution<double> normal(1, 0.01);
    std::bernoulli_distribution is_long(kShare);
    NoiseEstimate estimate;
    for (int i = 0; i < 200; ++i) {
      Times times;
      for (int row = 0; row < 32; ++row) {
        times.push_back({row, 1000, 1e7 * normal(random) * (is_long(random) ? 1 + kLonger : 1)});
      }
      estimate.AddIteration(i, 1, std::move(times));
    }
    const auto figures = estimate.Figures();
    ASSERT_TRUE(figures);
    rare.Add(figures->rare_variance, kRare);
    share.Add(figures->rare_share, kShare);
    variance.Add(figures->variance, 1e-4);
  }
  EXPECT_GE(rare.share(), 0.92);
  EXPECT_GE(share.share(), 0.9);
  EXPECT_GE(variance.share(), 0.92);
}

TEST(NoiseEstimate, APauseCountsNoMoreThanAFifth) {
  NoiseEstimate estimate;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(1, 0.01);
  for (int i = 0; i < 200; ++i) {
    Times times;
    for (int row = 0; row < 32; ++row) {
      times.push_back({row, 1000, 1e7 * normal(random) * (i == 80 && row == 7 ? 1000 : 1)});
    }
    estimate.AddIteration(i, 1, std::move(times));
  }
  const auto figures = estimate.Figures();
  ASSERT_TRUE(figures);
  // One computation of 200 iterations.
  EXPECT_NEAR(figures->rare_variance.value, 0.2 * 0.2 / (200 * 32), 1e-9);
  EXPECT_NEAR(figures->rare_share.value, 1.0 / (200 * 32), 1e-9);
  EXPECT_GT(figures->rare_share.error, figures->rare_share.value);
}

TEST(NoiseEstimate, ComparesOnlyWhatRanAlike) {
  const auto times = [](int mhz, double ns) {
    Times all;
    for (int row = 0; row < 8; ++row) all.push_back({row, mhz, ns});
    return all;
  };
  NoiseEstimate clocks;
  NoiseEstimate plans;
  NoiseEstimate gaps;
  for (int i = 0; i < 100; ++i) {
    const int odd = i % 2;
    clocks.AddIteration(i, 1, times(1000 + odd, 1e7 + 1e6 * odd));
    plans.AddIteration(i, i, times(1000, 1e7));
    gaps.AddIteration(2 * i, 1, times(1000, 1e7));
  }
  EXPECT_FALSE(clocks.Figures());
  EXPECT_FALSE(plans.Figures());
  EXPECT_FALSE(gaps.Figures());
}

// Nothing tells then what follows from one computation to the next. An error without bound would
// make the figure of all ranks worthless.
TEST(NoiseEstimate, SaysNoCorrelationWhereNoneAreNextToEachOther) {
  std::mt19937_64 random(12);
  std::normal_distribution<double> normal;
  NoiseEstimate estimate;
  for (int i = 0; i < 200; ++i) {
    Times times;
    for (std::ptrdiff_t row = 0; row < 96; row += 3) {
      times.push_back({row, 1000, 20e6 * (1 + 0.01 * normal(random))});
    }
    estimate.AddIteration(i, 1, std::move(times));
  }
  const auto figures = estimate.Figures();
  ASSERT_TRUE(figures);
  EXPECT_FALSE(figures->correlation);
  EXPECT_NEAR(figures->variance.value, 1e-4, 5 * figures->variance.error);
}

TEST(NoiseEstimate, SaysNothingOfFewIterations) {
  NoisyTrainer trainer(1);
  NoiseEstimate estimate;
  trainer.Train({.noise = 0.01, .iterations = 14}, &estimate);
  EXPECT_FALSE(estimate.Figures());
}

TEST(LatencyFigures, AreOfTheNewestCallsWithoutThoseThatStandOut) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> ms(15, 2);
  Coverage latency;
  Coverage spread;
  for (int i = 0; i < 200; ++i) {
    LatencyRecord record;
    for (int call = 0; call < 100; ++call) {
      const double taken = call % 20 == 3 ? 300 : ms(random);
      record.AddCall(1000, static_cast<std::int64_t>(taken * kMs));
    }
    const auto figures = record.Figures();
    ASSERT_TRUE(figures);
    EXPECT_EQ(figures->calls, 64);
    latency.Add(figures->seconds, 0.015);
    spread.Add(figures->spread_seconds, 0.002);
  }
  EXPECT_GE(latency.share(), 0.9);
  EXPECT_GE(spread.share(), 0.85);
}

TEST(LatencyFigures, HoldWhatClocksTakeToSettle) {
  LatencyRecord record;
  for (int call = 0; call < 7; ++call) record.AddCall(1000, 10 * kMs);
  EXPECT_FALSE(record.Figures());
  record.AddCall(1000, 10 * kMs);
  record.AddSettling(1000, 5 * kMs);
  const auto figures = record.Figures();
  ASSERT_TRUE(figures);
  EXPECT_DOUBLE_EQ(figures->seconds.value, 0.015);
  EXPECT_GT(figures->seconds.error, 0);
}

// Late clocks are no noise: their computations are left out.
TEST_F(FollowerTest, MeasuresNoiseOfComputationsAtTheirClocks) {
  const auto plan = Plan(1, {1000, 1000, 1400, 1400, 1000, 1000});
  follower_.Offer(plan);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  call_ns_ = 15 * kMs;
  for (int i = 0; i < 300; ++i) {
    Say(EventKind::kStepBegin, {}, i);
    for (const PlanRow& row : plan->rows) {
      Say(EventKind::kBegin, row.id);
      const std::int64_t begin = now_;
      // At the wrong clock it takes much longer.
      const bool late = follower_.clock_mhz() != row.mhz;
      const double ms = (late ? 60 : 40) * (1 + 0.02 * normal(random));
      Pass(now_ + static_cast<std::int64_t>(ms * kMs));
      now_ = std::max(now_, begin + static_cast<std::int64_t>(ms * kMs));
      Say(EventKind::kEnd, row.id);
    }
    Say(EventKind::kStepEnd);
  }
  const auto figures = follower_.Noise();
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->variance.value, 0.02 * 0.02, 3 * figures->variance.error);
  EXPECT_NEAR(figures->rank_variance.value, 0, 3 * figures->rank_variance.error);
  EXPECT_LT(figures->variance.error, 0.25 * 0.02 * 0.02);
}

TEST_F(FollowerTest, TakesNoiseFromTheDevicesTimesWhereItHasThem) {
  const auto plan = Plan(1, {1000, 1000, 1000, 1000, 1000, 1000});
  follower_.Offer(plan);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 200; ++i) {
    Iterate(*plan, i);  // The host says 40 ms for each.
    StepTimes times{.iteration = i, .computations = {}};
    for (int row = 0; row < 6; ++row) {
      const double ms = 40 * (1 + 0.01 * normal(random));
      const std::int64_t begin = row * 50 * kMs;
      times.computations.push_back({begin, begin + static_cast<std::int64_t>(ms * kMs)});
    }
    follower_.HandleTimes(times);
  }
  const auto figures = follower_.Noise();
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->variance.value, 1e-4, 3 * figures->variance.error);
  EXPECT_LT(figures->variance.error, 0.25e-4);
}

}  // namespace
}  // namespace perseus::client
