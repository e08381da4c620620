// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/watch/realised_savings.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "common/comparison_blocks.h"

namespace perseus::server {
namespace {

constexpr ComparisonBlocks kBlocks = {.every = 20, .iterations = 6};

RC_GTEST_PROP(ComparisonBlocksRules, EachCycleHasOneStretchAtMaximumClocks, ()) {
  const int iterations = *rc::gen::inRange(2, 50);
  const ComparisonBlocks blocks = {.every = iterations + *rc::gen::inRange(2, 200),
                                   .iterations = iterations};
  RC_ASSERT(blocks.is_valid());
  const std::int64_t cycle = *rc::gen::inRange(-1000, 1'000'000);
  int at_maximum = 0;
  int switches = 0;
  for (std::int64_t i = cycle * blocks.every; i < (cycle + 1) * blocks.every; ++i) {
    RC_ASSERT(blocks.CycleOf(i) == cycle);
    at_maximum += blocks.AtMaximum(i) ? 1 : 0;
    switches += i > cycle * blocks.every && blocks.Settles(i) ? 1 : 0;
  }
  RC_ASSERT(at_maximum == iterations);
  RC_ASSERT(switches == 1);
}

TEST(ComparisonBlocksTest, EitherOrderIsAsLikely) {
  int first = 0;
  for (std::int64_t cycle = 0; cycle < 10'000; ++cycle) {
    first += kBlocks.AtMaximum(cycle * kBlocks.every) ? 1 : 0;
  }
  EXPECT_NEAR(first, 5000, 150);
}

TEST(RealisedSavingsTest, StudentsQuantiles) {
  EXPECT_NEAR(StudentT95(1), 12.706, 1e-3);
  EXPECT_NEAR(StudentT95(10), 2.228, 1e-3);
  EXPECT_NEAR(StudentT95(11), 2.201, 1e-3);
  EXPECT_NEAR(StudentT95(30), 2.042, 1e-3);
  EXPECT_NEAR(StudentT95(1'000'000), 1.960, 1e-3);
}

ComparedIteration Exact(std::int64_t iteration) {
  const bool at_maximum = kBlocks.AtMaximum(iteration);
  return {.iteration = iteration,
          .plan_version = at_maximum ? 0 : 7,
          .is_known = true,
          .ranks = 8,
          .seconds = at_maximum ? 2.0 : 2.04,
          .energy_ranks = 8,
          .joules = at_maximum ? 100.0 : 85.0};
}

TEST(RealisedSavingsTest, FiguresOfAnExactJob) {
  RealisedSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 80; ++i) {
    ComparedIteration iteration = Exact(i);
    if (kBlocks.Settles(i)) iteration.seconds = 1000;  // Left out.
    savings.Add(iteration);
  }
  const auto realised = savings.Of(7);
  ASSERT_TRUE(realised);
  EXPECT_EQ(realised->pairs, 4);
  EXPECT_NEAR(realised->slowdown->share, 0.02, 1e-9);
  EXPECT_NEAR(realised->slowdown->least, 0.02, 1e-9);
  EXPECT_NEAR(realised->saving->share, 0.15, 1e-9);
  EXPECT_NEAR(realised->with_joules, 85, 1e-9);
  EXPECT_NEAR(realised->without_seconds, 2, 1e-9);
  EXPECT_EQ(savings.dropped_cycles(), 0);
}

TEST(RealisedSavingsTest, NoIntervalBeforeThreePairs) {
  RealisedSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 40; ++i) savings.Add(Exact(i));
  EXPECT_EQ(savings.Of(7)->pairs, 2);
  EXPECT_FALSE(savings.Of(7)->slowdown);
  EXPECT_FALSE(savings.Of(7)->saving);
}

TEST(RealisedSavingsTest, EnergyThatNobodySaysIsNotMadeUp) {
  RealisedSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 100; ++i) {
    ComparedIteration iteration = Exact(i);
    iteration.energy_ranks = i % 20 == 4 ? 4 : 8;  // Half of the ranks, once in each cycle.
    savings.Add(iteration);
  }
  EXPECT_EQ(savings.Of(7)->pairs, 5);
  EXPECT_EQ(savings.Of(7)->energy_pairs, 0);
  EXPECT_FALSE(savings.Of(7)->saving);
}

TEST(RealisedSavingsTest, ACycleThatIsNotAsOrderedIsLeftOut) {
  const auto pairs_with = [](auto&& spoil) {
    RealisedSavings savings;
    savings.Set(kBlocks);
    for (int i = 0; i < 100; ++i) {
      ComparedIteration iteration = Exact(i);
      if (spoil(&iteration)) savings.Add(iteration);
    }
    EXPECT_EQ(savings.dropped_cycles(), 1);
    return savings.Of(7)->pairs;
  };
  EXPECT_EQ(pairs_with([](ComparedIteration* i) { return i->iteration != 27; }), 4);
  EXPECT_EQ(pairs_with([](ComparedIteration* i) {
              if (i->iteration == 27) i->is_known = false;
              return true;
            }),
            4);
  EXPECT_EQ(pairs_with([](ComparedIteration* i) {
              if (i->iteration == 27) i->ranks = 5;
              return true;
            }),
            4);
  EXPECT_EQ(pairs_with([](ComparedIteration* i) {
              if (i->plan_version != 0 && i->iteration >= 30 && i->iteration < 40) {
                i->plan_version = 8;
              }
              return true;
            }),
            4);
}

// Of 1,000 simulated jobs, in how many the intervals hold the truth.
struct Coverage {
  double time = 0;
  double energy = 0;
};

Coverage CoverageOf(double correlation, double outliers, int cycles) {
  constexpr double kTime = 0.02;
  constexpr double kEnergy = 0.12;
  constexpr int kJobs = 1000;
  Coverage coverage;
  std::mt19937_64 random(42);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (int job = 0; job < kJobs; ++job) {
    RealisedSavings savings;
    savings.Set(kBlocks);
    double lasting = normal(random);
    const double trend = 0.1 * (uniform(random) - 0.5) / (20 * cycles);
    // Each job begins elsewhere, as its orders of stretches are others.
    const std::int64_t begin = 20 * static_cast<std::int64_t>(uniform(random) * 1e6);
    for (std::int64_t i = begin; i < begin + 20 * cycles; ++i) {
      lasting = correlation * lasting + std::sqrt(1 - correlation * correlation) * normal(random);
      double noise =
          0.02 * lasting + 0.01 * normal(random) + trend * static_cast<double>(i - begin);
      if (uniform(random) < outliers) noise += 0.1;
      const bool at_maximum = kBlocks.AtMaximum(i);
      savings.Add({.iteration = i,
                   .plan_version = at_maximum ? 0 : 1,
                   .is_known = true,
                   .ranks = 8,
                   .seconds = (at_maximum ? 1 : 1 + kTime) * std::exp(noise),
                   .energy_ranks = 8,
                   .joules = (at_maximum ? 1 : 1 - kEnergy) *
                             std::exp(0.7 * noise + 0.01 * normal(random))});
    }
    const Realised realised = *savings.Of(1);
    coverage.time += realised.slowdown->least <= kTime && kTime <= realised.slowdown->most;
    coverage.energy += realised.saving->least <= kEnergy && kEnergy <= realised.saving->most;
  }
  coverage.time /= kJobs;
  coverage.energy /= kJobs;
  return coverage;
}

TEST(RealisedSavingsTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const double correlation : {0.0, 0.9, 0.99}) {
    for (const double outliers : {0.0, 0.02}) {
      for (const int cycles : {4, 10, 40}) {
        const Coverage coverage = CoverageOf(correlation, outliers, cycles);
        RecordProperty("time_percent", static_cast<int>(1000 * coverage.time));
        EXPECT_GE(coverage.time, 0.93) << correlation << " " << outliers << " " << cycles;
        EXPECT_LE(coverage.time, 0.97) << correlation << " " << outliers << " " << cycles;
        EXPECT_GE(coverage.energy, 0.93) << correlation << " " << outliers << " " << cycles;
        EXPECT_LE(coverage.energy, 0.97) << correlation << " " << outliers << " " << cycles;
      }
    }
  }
}

}  // namespace
}  // namespace perseus::server
