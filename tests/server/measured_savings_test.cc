// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/measured_savings.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "common/comparison_blocks.h"

namespace perseus::server {
namespace {

constexpr ComparisonBlocks kBlocks = {.every = 20, .iterations = 6};

RC_GTEST_PROP(ComparisonBlocksRules, EachCycleHasOnePhaseAtMaximumClocks, ()) {
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

// The places of the first `count` iterations at which a phase at maximum clocks begins, with an
// iteration under the plan before it and one after it.
int PhasesIn(std::int64_t count) {
  int phases = 0;
  bool is_whole = false;
  for (std::int64_t i = 1; i < count; ++i) {
    if (!kBlocks.Settles(i)) continue;
    if (kBlocks.AtMaximum(i)) {
      is_whole = true;
    } else if (is_whole) {
      ++phases;
    }
  }
  // The part after the last one ends where the next begins.
  return kBlocks.AtMaximum(count - 1) ? phases : phases - 1;
}

TEST(MeasuredSavingsTest, FiguresOfAnExactJob) {
  MeasuredSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 200; ++i) {
    ComparedIteration iteration = Exact(i);
    if (kBlocks.Settles(i)) iteration.seconds = 1000;  // Left out.
    savings.Add(iteration);
  }
  const auto measured = savings.Of(7);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->pairs, PhasesIn(200));
  EXPECT_GE(measured->pairs, 5);
  EXPECT_NEAR(measured->slowdown->share, 0.02, 1e-9);
  EXPECT_NEAR(measured->slowdown->least, 0.02, 1e-9);
  EXPECT_NEAR(measured->saving->share, 0.15, 1e-9);
  EXPECT_NEAR(measured->with_joules, 85, 1e-9);
  EXPECT_NEAR(measured->without_seconds, 2, 1e-9);
  EXPECT_EQ(measured->settling, Settling::kUnknown);  // Of phases of 6.
  EXPECT_EQ(savings.dropped_cycles(), 0);
}

TEST(MeasuredSavingsTest, NoIntervalBeforeThreePairs) {
  MeasuredSavings savings;
  savings.Set(kBlocks);
  std::int64_t pairs = 0;
  for (int i = 0; i < 400 && pairs < MeasuredSavings::kLeastPairs; ++i) {
    savings.Add(Exact(i));
    const auto measured = savings.Of(7);
    if (!measured) continue;
    pairs = measured->pairs;
    EXPECT_EQ(measured->slowdown.has_value(), pairs >= 3);
    EXPECT_EQ(measured->saving.has_value(), pairs >= 3);
  }
  EXPECT_EQ(pairs, 3);
}

TEST(MeasuredSavingsTest, EnergyThatNobodySaysIsNotMadeUp) {
  MeasuredSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 200; ++i) {
    ComparedIteration iteration = Exact(i);
    iteration.energy_ranks = i % 5 == 4 ? 4 : 8;  // Half of the ranks, in each phase.
    savings.Add(iteration);
  }
  EXPECT_EQ(savings.Of(7)->pairs, PhasesIn(200));
  EXPECT_EQ(savings.Of(7)->energy_pairs, 0);
  EXPECT_FALSE(savings.Of(7)->saving);
}

TEST(MeasuredSavingsTest, ACycleThatIsNotAsOrderedIsLeftOut) {
  const auto savings_with = [](auto&& spoil) {
    MeasuredSavings savings;
    savings.Set(kBlocks);
    for (int i = 0; i < 400; ++i) {
      ComparedIteration iteration = Exact(i);
      if (spoil(&iteration)) {
        // None of the cycle may count.
        if (kBlocks.CycleOf(i) == 10) iteration.joules = 1;
        savings.Add(iteration);
      }
    }
    EXPECT_EQ(savings.dropped_cycles(), 1);
    const MeasuredSaving measured = *savings.Of(7);
    EXPECT_LT(measured.pairs, PhasesIn(400));
    EXPECT_GE(measured.pairs, PhasesIn(400) - 3);
    return measured.saving->share;
  };
  // It is missing before the cycle's second half, which may not count.
  EXPECT_NEAR(savings_with([](ComparedIteration* i) { return i->iteration != 200; }), 0.15, 1e-9);
  EXPECT_NEAR(savings_with([](ComparedIteration* i) {
                i->is_known = i->iteration != 200;
                return true;
              }),
              0.15, 1e-9);
  EXPECT_NEAR(savings_with([](ComparedIteration* i) {
                if (i->iteration == 207) i->ranks = 5;
                return true;
              }),
              0.15, 1e-9);
}

TEST(MeasuredSavingsTest, PlansOfTwoVersionsAreNotMixed) {
  MeasuredSavings savings;
  savings.Set(kBlocks);
  for (int i = 0; i < 800; ++i) {
    ComparedIteration iteration = Exact(i);
    if (iteration.plan_version != 0 && i >= 400) {
      iteration.plan_version = 8;
      iteration.joules = 70;
    }
    savings.Add(iteration);
  }
  EXPECT_NEAR(savings.Of(7)->saving->share, 0.15, 1e-9);
  EXPECT_NEAR(savings.Of(8)->saving->share, 0.3, 1e-9);
}

// What disturbs a simulated job. Shares of the energy of an iteration; times are disturbed more.
struct Disturbance {
  const char* name = "";
  double correlation = 0;     // Of lasting noise, from one iteration to the next.
  double small_outliers = 0;  // Share of iterations that are 10 % off.
  double large_outliers = 0;  // Share that are 50 % off, and two thirds of it that are 500 % off.
  double drift = 0;           // Of an iteration over a cycle, steadily.
  double slow_effect = 0;     // What a change of clocks does only in time ...
  double settling = 10;       // ... with this time constant, in iterations.
};

// In how many simulated jobs the intervals hold the truth.
struct Coverage {
  int jobs = 0;
  double time = 0;
  double energy = 0;
  double settles = 0;  // Share that says so.
  double grows = 0;
  double longer = 0;  // Share whose phases were lengthened.
};

Coverage CoverageOf(const Disturbance& disturbance, const ComparisonBlocks& blocks, int cycles,
                    int jobs, bool lengthens = false) {
  constexpr double kTime = 0.02;
  constexpr double kEnergy = 0.12;
  Coverage coverage;
  std::mt19937_64 random(42);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const double rest = std::sqrt(1 - disturbance.correlation * disturbance.correlation);
  for (int job = 0; job < jobs; ++job) {
    MeasuredSavings savings;
    savings.Set(blocks);
    ComparisonBlocks now = blocks;
    double lasting = normal(random);
    // Each job begins elsewhere, as its orders of phases are others.
    const std::int64_t begin = blocks.every * static_cast<std::int64_t>(uniform(random) * 1e6);
    double warm = now.AtMaximum(begin) ? 1 : 0;
    for (std::int64_t i = begin; i < begin + blocks.every * cycles; ++i) {
      lasting = disturbance.correlation * lasting + rest * normal(random);
      double noise = 0.02 * lasting + 0.01 * normal(random) +
                     disturbance.drift * static_cast<double>(i - begin) / blocks.every;
      if (uniform(random) < disturbance.small_outliers) noise += 0.1;
      const double outlier = uniform(random);
      if (outlier < disturbance.large_outliers / 3 * 5) noise += std::log(1.5);
      if (outlier < disturbance.large_outliers / 3 * 2) noise += std::log(4);
      const bool at_maximum = now.AtMaximum(i);
      warm += ((at_maximum ? 1 : 0) - warm) / disturbance.settling;
      savings.Add(
          {.iteration = i,
           .plan_version = at_maximum ? 0 : 1,
           .is_known = true,
           .ranks = 8,
           .seconds = (at_maximum ? 1 : 1 + kTime) * std::exp(noise),
           .energy_ranks = 8,
           .joules = (at_maximum ? 1 : 1 - kEnergy) * std::exp(0.7 * noise + 0.01 * normal(random) +
                                                               disturbance.slow_effect * warm)});
      if (const auto longer = savings.Longer(); longer && lengthens) {
        now = *longer;
        savings.Set(now);
      }
    }
    coverage.longer += now == blocks ? 0 : 1;
    const auto measured = savings.Of(1);
    if (!measured || !measured->saving) continue;
    ++coverage.jobs;
    const double energy = 1 - (1 - kEnergy) * std::exp(-disturbance.slow_effect);
    coverage.time += measured->slowdown->least <= kTime && kTime <= measured->slowdown->most;
    coverage.energy += measured->saving->least <= energy && energy <= measured->saving->most;
    coverage.settles += measured->settling == Settling::kOver;
    coverage.grows += measured->settling == Settling::kGoesOn;
  }
  coverage.time /= coverage.jobs;
  coverage.energy /= coverage.jobs;
  coverage.settles /= coverage.jobs;
  coverage.grows /= coverage.jobs;
  coverage.longer /= jobs;
  return coverage;
}

TEST(MeasuredSavingsTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const Disturbance& disturbance :
       {Disturbance{.name = "noise"}, Disturbance{.name = "lasting noise", .correlation = 0.9},
        Disturbance{.name = "long noise", .correlation = 0.99},
        Disturbance{.name = "small outliers", .small_outliers = 0.02},
        Disturbance{.name = "rare large outliers", .large_outliers = 0.003},
        Disturbance{.name = "drift", .drift = 0.02},
        Disturbance{.name = "drift and long noise", .correlation = 0.99, .drift = -0.02}}) {
    for (const int cycles : {6, 10, 40}) {
      const Coverage coverage = CoverageOf(disturbance, kBlocks, cycles, 1000);
      EXPECT_GE(coverage.time, 0.93) << disturbance.name << " " << cycles;
      EXPECT_LE(coverage.time, 0.97) << disturbance.name << " " << cycles;
      EXPECT_GE(coverage.energy, 0.93) << disturbance.name << " " << cycles;
      EXPECT_LE(coverage.energy, 0.97) << disturbance.name << " " << cycles;
      EXPECT_LE(coverage.grows, 0.05) << disturbance.name << " " << cycles;
    }
  }
}

TEST(MeasuredSavingsTest, WhatSettlesSlowlyIsLeftOutOrSaid) {
  for (const double settling : {5.0, 10.0, 30.0}) {
    for (const int iterations : {10, 60, 200}) {
      SCOPED_TRACE(testing::Message() << settling << " in " << iterations);
      const Coverage coverage =
          CoverageOf({.name = "settling", .slow_effect = 0.03, .settling = settling},
                     {.every = 4 * iterations, .iterations = iterations}, 12, 300);
      // Half a phase is left out. Where that is 3 time constants or more, little is left.
      if (iterations >= 6 * settling) {
        EXPECT_GE(coverage.energy, 0.92);
        EXPECT_LE(coverage.energy, 0.98);
      } else {
        EXPECT_LE(coverage.settles, 0.05);
      }
    }
  }
}

TEST(MeasuredSavingsTest, PhasesGrowUntilWhatSettlesIsOver) {
  constexpr ComparisonBlocks kShort = {.every = 40, .iterations = 10};
  const Coverage slow =
      CoverageOf({.name = "settling", .slow_effect = 0.05, .settling = 10}, kShort, 600, 100, true);
  EXPECT_GE(slow.longer, 0.95);
  EXPECT_GE(slow.energy, 0.9);
  const Coverage fixed =
      CoverageOf({.name = "settling", .slow_effect = 0.05, .settling = 10}, kShort, 600, 100);
  EXPECT_LE(fixed.energy, 0.5);
  for (const double correlation : {0.0, 0.9}) {
    const Coverage noise =
        CoverageOf({.name = "noise", .correlation = correlation}, kShort, 150, 300, true);
    EXPECT_LE(noise.longer, 0.1) << correlation;
    EXPECT_GE(noise.energy, 0.92) << correlation;
  }
}

TEST(MeasuredSavingsTest, PhasesGrowNoLongerThanWhatIsKept) {
  MeasuredSavings savings;
  savings.Set({.every = 2048, .iterations = 1024});
  EXPECT_FALSE(savings.Longer());
}

}  // namespace
}  // namespace perseus::server
