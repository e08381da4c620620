// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/sweep.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "measure/curve.h"
#include "measure/profile_fit.h"
#include "measure/recorder.h"
#include "measure/simulated_sweep.h"

namespace perseus::measure {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// A GPU on an imaginary clock: each type has its watts at a clock, waiting has
// its own, and the counter steps every `period_ns_`.
class SweepTest : public testing::Test {
 protected:
  void Make(const std::vector<int>& clocks, int iterations, bool default_clocks = false) {
    SweepSettings settings;
    settings.iterations = iterations;
    settings.default_clocks = default_clocks;
    sweep_.emplace(clocks, settings);
  }

  void Pass(std::int64_t ns, double watts) {
    const std::int64_t end = now_ + ns;
    while (now_ < end) {
      const std::int64_t next = std::min(end, now_ + kMillisecond);
      joules_ += watts * static_cast<double>(next - now_) * 1e-9;
      now_ = next;
      if (counts_ && now_ / period_ns_ != counted_period_) {
        counted_period_ = now_ / period_ns_;
        counter_ = joules_;
      }
      sweep_->AddRead(counter_, now_, now_);
    }
  }

  static double Watts(ComputationType type, double mhz) {
    return 80 + std::pow(mhz / 1000, 2) * (type == ComputationType::kForward ? 150 : 200);
  }

  // 30 and 60 ms at 1000 MHz and a work of 1.
  void Compute(ComputationType type) {
    const double mhz =
        sweep_->measures_default_clocks()
            ? boost_mhz_
            : std::min(sweep_->clock_mhz() > 0 ? sweep_->clock_mhz() : 1000, most_mhz_);
    const double work = works_ ? 1 + 0.2 * ((++computations_ * 7) % 5 - 2) : 1;
    if (works_) sweep_->SetWork(work * 2048);
    sweep_->Begin({type, 2}, now_);
    sweep_->AddClock(seen_mhz_ > 0 ? seen_mhz_ : sweep_->clock_mhz());
    if (sweep_->measures_default_clocks()) sweep_->AddConditions({}, true);  // At its power cap.
    const double ms = (type == ComputationType::kForward ? 30 : 60) * (0.25 + 0.75 * work);
    Pass(static_cast<std::int64_t>(ms * 1e6 * 1000 / mhz), Watts(type, mhz));
    sweep_->End(now_);
  }

  void Iterate() {
    sweep_->BeginIteration(++number_, now_);
    for (int i = 0; i < 4; ++i) Compute(ComputationType::kForward);
    Pass(53 * kMillisecond, kWaitingWatts);
    for (int i = 0; i < 4; ++i) {
      Compute(ComputationType::kBackward);
      if (i < 3) Pass(17 * kMillisecond, kWaitingWatts);
    }
    sweep_->EndIteration(now_);
    Pass(7 * kMillisecond, kWaitingWatts);
  }

  // Until it is done; how many iterations that took.
  int Run(int most = 1000) {
    int iterations = 0;
    int mhz = -1;
    while (!sweep_->ended() && iterations < most) {
      if (sweep_->clock_mhz() != mhz) {
        mhz = sweep_->clock_mhz();
        sweep_->ClockInEffect(now_ + 15 * kMillisecond);
      }
      Iterate();
      ++iterations;
      Take();
    }
    sweep_->Finish();
    Take();
    return iterations;
  }

  void Take() {
    for (const Estimate& row : sweep_->TakeRows()) rows_[{row.kind.type, row.mhz}] = row;
    for (const std::string& note : sweep_->TakeNotes()) notes_.push_back(note);
  }

  static constexpr double kWaitingWatts = 70;
  std::optional<Sweep> sweep_;
  std::int64_t now_ = 5'000 * kMillisecond;
  std::int64_t number_ = 0;
  std::int64_t period_ns_ = 20 * kMillisecond;
  std::int64_t counted_period_ = 0;
  bool counts_ = true;
  bool works_ = false;
  int computations_ = 0;
  int seen_mhz_ = 0;
  int boost_mhz_ = 1100;  // At default clocks.
  int most_mhz_ = 5000;   // The card goes no higher, and does not say so.
  double joules_ = 1000;
  double counter_ = 1000;
  std::map<std::pair<ComputationType, int>, Estimate> rows_;
  std::vector<std::string> notes_;
};

TEST_F(SweepTest, RecoversTimesEnergiesAndBlockingPower) {
  Make({800, 900, 1000}, 6);
  // Twice as many of the highest, and one to settle at each.
  EXPECT_EQ(Run(), 12 + 6 + 6 + 3);
  ASSERT_EQ(rows_.size(), 6U);
  for (const auto& [key, row] : rows_) {
    const double mhz = row.mhz;
    const double seconds =
        (row.kind.type == ComputationType::kForward ? 0.030 : 0.060) * 1000 / mhz;
    EXPECT_EQ(row.kind.stage, 2);
    EXPECT_GE(row.samples, 24);
    EXPECT_NEAR(row.seconds, seconds, 1e-5);
    EXPECT_NEAR(row.joules, seconds * Watts(row.kind.type, mhz), 0.01 * row.joules);
    EXPECT_NEAR(row.joules, seconds * Watts(row.kind.type, mhz), 4 * row.joules_std);
  }
  ASSERT_TRUE(sweep_->blocking());
  EXPECT_NEAR(sweep_->blocking()->watts, kWaitingWatts, 0.01 * kWaitingWatts);
  EXPECT_NEAR(*sweep_->counter_period_seconds(), 0.020, 0.001);
}

TEST_F(SweepTest, SaysWhatItCosts) {
  Make({500, 1000}, 2);
  const int iterations = Run();
  const SweepCost cost = sweep_->cost();
  EXPECT_EQ(cost.iterations, iterations);
  // At 500 MHz computations take twice their 0.36 s: 3 of the iterations there.
  EXPECT_NEAR(*cost.extra_seconds, 3 * 0.36, 0.05);
  EXPECT_LT(*cost.extra_joules, 0);
  EXPECT_NEAR(cost.seconds, iterations * 0.464 + 3 * 0.36, 0.05);
}

TEST_F(SweepTest, WorkThatVariesIsALineForTimeAndEnergy) {
  works_ = true;
  Make({800, 1000}, 10);
  Run();
  const Estimate& row = rows_.at({ComputationType::kBackward, 1000});
  EXPECT_NEAR(row.work, 2048, 40);
  ASSERT_TRUE(row.seconds_per_work && row.joules_per_work);
  EXPECT_NEAR(*row.seconds_per_work, 0.060 * 0.75 / 2048, 0.01 * *row.seconds_per_work);
  EXPECT_NEAR(*row.joules_per_work, 280 * 0.060 * 0.75 / 2048, 0.05 * *row.joules_per_work);
  EXPECT_NEAR(row.joules, 280 * row.seconds, 0.02 * row.joules);
}

TEST_F(SweepTest, ACounterThatStandsStillIsNoData) {
  counts_ = false;
  std::vector<int> clocks;
  for (int mhz = 200; mhz <= 2000; mhz += 15) clocks.push_back(mhz);
  Make(clocks, 2);
  EXPECT_LT(Run(), 60);  // Of two clocks, not of 121.
  EXPECT_TRUE(rows_.empty());
  EXPECT_FALSE(sweep_->blocking());
  ASSERT_FALSE(notes_.empty());
  EXPECT_NE(notes_.back().find("2 clocks in a row"), std::string::npos) << notes_.back();
}

TEST_F(SweepTest, AClockThatDidNotTakeIsNotInTheProfile) {
  Make({900, 1000}, 2);
  seen_mhz_ = 1000;
  Run();
  EXPECT_EQ(rows_.count({ComputationType::kForward, 1000}), 1U);
  EXPECT_EQ(rows_.count({ComputationType::kForward, 900}), 0U);
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_EQ(notes_[0], "clock 900 did not take: 1000 seen; it is not in the profile");
}

TEST_F(SweepTest, PointsTakenUnderThrottlingAreMarked) {
  Make({900, 1000}, 2);
  sweep_->ClockInEffect(now_);
  Iterate();
  sweep_->AddConditions(81, true);
  for (int i = 0; i < 4; ++i) Iterate();
  Take();
  ASSERT_EQ(rows_.size(), 2U);
  EXPECT_TRUE(rows_.begin()->second.throttled);
  EXPECT_EQ(rows_.begin()->second.temperature_celsius, 81);
  Run();
  EXPECT_FALSE(rows_.at({ComputationType::kForward, 900}).throttled);
  EXPECT_TRUE(rows_.at({ComputationType::kForward, 1000}).throttled);
}

TEST_F(SweepTest, WhatWasSeenBeforeTheClockWasLostDoesNotCount) {
  Make({1000}, 1);
  sweep_->ClockInEffect(now_);
  Iterate();
  Iterate();
  sweep_->ClockLost();
  Iterate();  // At the driver's clock.
  EXPECT_FALSE(sweep_->ended());
  Run();
  EXPECT_EQ(rows_.begin()->second.samples, 2 * 4);
}

TEST_F(SweepTest, AnIterationThatBrokeOffDoesNotCount) {
  Make({1000}, 2);
  sweep_->ClockInEffect(now_);
  Iterate();
  sweep_->BeginIteration(77, now_);
  Compute(ComputationType::kForward);
  Pass(900 * kMillisecond, 400);  // A traceback, a checkpoint.
  sweep_->AbandonIteration();
  Run();
  EXPECT_EQ(rows_.begin()->second.samples, 4 * 4);
  EXPECT_NEAR(rows_.at({ComputationType::kForward, 1000}).joules, 0.030 * 230, 0.2);
}

TEST_F(SweepTest, WithoutClocksTheDriversAreMeasured) {
  Make({800, 900, 1000}, 4);
  sweep_->StayAtDriverClocks("not allowed");
  EXPECT_TRUE(sweep_->at_driver_clocks());
  seen_mhz_ = 950;
  Run();
  ASSERT_EQ(rows_.size(), 2U);
  const Estimate& row = rows_.at({ComputationType::kForward, 1000});
  EXPECT_NEAR(row.seconds, 0.030, 1e-4);
  EXPECT_NEAR(row.joules, 0.030 * 230, 0.02 * row.joules);
  EXPECT_TRUE(sweep_->blocking());
  EXPECT_EQ(notes_, std::vector<std::string>{"not allowed"});
}

TEST_F(SweepTest, AQuarterOfTheClocksIsMeasuredAgain) {
  std::vector<int> clocks;
  for (int mhz = 500; mhz <= 1200; mhz += 100) clocks.push_back(mhz);
  Make(clocks, 2);
  // Eight clocks, the highest after the first pass, and two at the end; one to settle at each.
  EXPECT_EQ(Run(), 11 * 3);
  EXPECT_EQ(rows_.size(), 16U);
  EXPECT_EQ(rows_.at({ComputationType::kForward, 1200}).samples, (2 + 2 + 2) * 4);
  EXPECT_EQ(rows_.at({ComputationType::kForward, 1100}).samples, 2 * 4);
  EXPECT_EQ(rows_.at({ComputationType::kForward, 800}).samples, (2 + 2) * 4);
}

TEST_F(SweepTest, ClocksAtWhichTheCardIsNoFasterAreDoubtful) {
  std::vector<int> clocks;
  for (int mhz = 700; mhz <= 1200; mhz += 50) clocks.push_back(mhz);
  Make(clocks, 3);
  most_mhz_ = 1050;
  Run();
  for (const auto& [key, row] : rows_) {
    EXPECT_EQ(IsDoubtful(row), key.second > 1050) << key.second;
  }
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("from 1100 MHz up"), std::string::npos) << notes_[0];
}

// The card boosts above its table, and is at its power cap. Neither makes it doubtful, nor changes
// what is measured at clocks.
TEST_F(SweepTest, LastOfAllItMeasuresWithNoClockSet) {
  Make({800, 900, 1000}, 6);
  Run();
  const auto locked = rows_;
  rows_.clear();
  Make({800, 900, 1000}, 6, true);
  now_ = 5'000 * kMillisecond;
  joules_ = counter_ = 1000;
  counted_period_ = 0;
  // As long as the highest clock, and an iteration to settle.
  EXPECT_EQ(Run(), 12 + 6 + 6 + 3 + 12 + 1);
  ASSERT_EQ(rows_.size(), 8U);
  for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
    const Estimate& row = rows_.at({type, kDefaultClockMhz});
    const double seconds = (type == ComputationType::kForward ? 0.030 : 0.060) / 1.1;
    EXPECT_EQ(row.samples, 12 * 4);
    EXPECT_NEAR(row.seconds, seconds, 1e-3 * seconds);
    EXPECT_NEAR(row.joules, Watts(type, 1100) * seconds, 0.01 * row.joules);
    EXPECT_GT(row.joules_std, 0);
    EXPECT_FALSE(row.throttled);
    EXPECT_FALSE(IsDoubtful(row));
  }
  for (const auto& [key, row] : locked) {
    EXPECT_NEAR(rows_.at(key).seconds, row.seconds, 1e-4 * row.seconds);
    EXPECT_NEAR(rows_.at(key).joules, row.joules, 5e-3 * row.joules);
  }
  EXPECT_TRUE(notes_.empty()) << notes_.front();
}

TEST_F(SweepTest, WithNoClockSetIsMeasuredAfterTheClocksThatAreMeasuredAgain) {
  std::vector<int> clocks;
  for (int mhz = 500; mhz <= 1200; mhz += 100) clocks.push_back(mhz);
  Make(clocks, 2, true);
  boost_mhz_ = 1150;
  EXPECT_EQ(Run(), 11 * 3 + 5);
  EXPECT_EQ(rows_.size(), 18U);
  const Estimate& row = rows_.at({ComputationType::kBackward, kDefaultClockMhz});
  EXPECT_NEAR(row.seconds, 0.060 / 1.15, 1e-3 * row.seconds);
  EXPECT_NEAR(row.joules, Watts(ComputationType::kBackward, 1150) * row.seconds, 0.02 * row.joules);
}

TEST_F(SweepTest, WhatWasReportedBeforeARestartIsLeftOut) {
  Make({800, 900, 1000}, 2, true);
  sweep_->Leave({800, 900, 1000});
  EXPECT_TRUE(sweep_->measures_default_clocks());
  EXPECT_EQ(Run(), 2 * 2 + 1);
  ASSERT_EQ(rows_.size(), 2U);
  EXPECT_NEAR(rows_.at({ComputationType::kForward, kDefaultClockMhz}).seconds, 0.030 / 1.1, 1e-4);
  Make({800, 900, 1000}, 2, true);
  sweep_->Leave({800, 900, 1000, kDefaultClockMhz});
  EXPECT_TRUE(sweep_->ended());
  Make({800, 900, 1000}, 2, true);
  sweep_->Leave({900, kDefaultClockMhz});
  rows_.clear();
  Run();
  EXPECT_EQ(rows_.size(), 4U);  // At 1000 and at 800 MHz.
}

TEST_F(SweepTest, WhoseClocksCannotBeSetIsNotMeasuredTwice) {
  Make({800, 900, 1000}, 4, true);
  sweep_->StayAtDriverClocks("not allowed");
  Run();
  EXPECT_EQ(rows_.size(), 2U);
  EXPECT_FALSE(rows_.contains({ComputationType::kForward, kDefaultClockMhz}));
}

TEST_F(SweepTest, DeviceTimesReplaceTheHosts) {
  Make({1000}, 2);
  sweep_->ClockInEffect(now_);
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (int i = 0; i < 8 && !sweep_->ended(); ++i) {
    const std::int64_t begin = now_;
    sweep_->BeginIteration(i, now_);
    for (int k = 0; k < 4; ++k) {  // Queued at once.
      sweep_->Begin({ComputationType::kForward, 0}, now_);
      sweep_->End(now_ + 10'000);
    }
    times.clear();
    for (int k = 0; k < 4; ++k) {
      times.emplace_back(now_ - begin, now_ - begin + 40 * kMillisecond);
      Pass(40 * kMillisecond, 250);
      Pass(10 * kMillisecond, kWaitingWatts);
    }
    sweep_->EndIteration(now_);
    sweep_->SetTimes(i, times);
  }
  ASSERT_TRUE(sweep_->ended());
  sweep_->Finish();
  Take();
  ASSERT_EQ(rows_.size(), 1U);
  // The first iteration was taken at its word: it settles.
  EXPECT_NEAR(rows_.begin()->second.seconds, 0.040, 1e-6);
  EXPECT_NEAR(rows_.begin()->second.joules, 10, 0.3);
}

// Curves that say nothing of each other, one that hangs on all, and zeros within a row.
TEST(CholeskyTest, ZerosThatAreSkippedChangeNothing) {
  constexpr std::size_t kSize = 7;
  SymmetricMatrix matrix(kSize);
  for (std::size_t i = 0; i < kSize; ++i) matrix.Add(i, i, 2 + static_cast<double>(i));
  for (const auto& [row, column] :
       {std::pair<std::size_t, std::size_t>(1, 0), {3, 2}, {4, 2}, {6, 0}, {6, 3}, {6, 5}}) {
    matrix.Add(row, column, 0.5 + 0.1 * static_cast<double>(row));
  }
  const Cholesky factor(matrix);
  const std::vector<double> right = {2, 1, 5, -2, 3, 7, 4};
  const std::vector<double> solved = factor.Solve(right);
  const SymmetricMatrix inverse = factor.Inverse();
  for (std::size_t i = 0; i < kSize; ++i) {
    double product = 0;
    double by_inverse = 0;
    for (std::size_t j = 0; j < kSize; ++j) {
      product += matrix.at(i, j) * solved[j];
      by_inverse += inverse.at(i, j) * right[j];
    }
    EXPECT_NEAR(product, right[i], 1e-12) << i;
    EXPECT_NEAR(by_inverse, solved[i], 1e-12) << i;
  }
}

constexpr std::int64_t kMs = 1'000'000;

TEST(CounterReader, AnUnchangedReadIsNoData) {
  CounterReader counter;
  EXPECT_FALSE(counter.Add(10, 0, 1 * kMs));
  for (int i = 1; i < 50; ++i) EXPECT_FALSE(counter.Add(10, i * 2 * kMs, i * 2 * kMs + kMs));
  const auto tick = counter.Add(13, 100 * kMs, 101 * kMs);
  ASSERT_TRUE(tick);
  EXPECT_EQ(tick->after_ns, 98 * kMs);  // Begin of the last read that showed the old value,
  EXPECT_EQ(tick->by_ns, 101 * kMs);    // end of the first that showed the new one.
  EXPECT_EQ(tick->joules, 13);
}

TEST(CounterReader, ACounterThatBeganAnewSaysNothingOnce) {
  CounterReader counter;
  counter.Add(10, 0, 1);
  EXPECT_TRUE(counter.Add(11, 10, 11));
  EXPECT_FALSE(counter.Add(0.5, 20, 21));  // The driver was loaded anew.
  const auto tick = counter.Add(0.7, 30, 31);
  ASSERT_TRUE(tick);
  EXPECT_FALSE(tick->follows);
}

TEST(CounterReader, AfterAPauseStepsDoNotFollow) {
  CounterReader counter;
  counter.Add(10, 0, 1);
  counter.Add(11, 10, 11);
  EXPECT_TRUE(counter.Add(12, 20, 21)->follows);
  counter.Pause();
  EXPECT_FALSE(counter.Add(15, 500, 501)->follows);
  EXPECT_TRUE(counter.Add(16, 510, 511)->follows);
}

// However often it is read, the steps are those of the counter, each lies where it says, and the
// period is found.
RC_GTEST_PROP(CounterReader, FindsTheStepsOfAnyCounter, ()) {
  const std::int64_t period = *rc::gen::inRange<std::int64_t>(20, 101) * kMs;
  const std::int64_t phase = *rc::gen::inRange<std::int64_t>(0, period);
  CounterReader counter;
  std::int64_t now = 0;
  std::int64_t steps = -1;
  while (steps < 40) {
    now += *rc::gen::inRange<std::int64_t>(kMs / 2, 4 * kMs);
    const std::int64_t passed = (now + period - phase) / period;
    const auto tick = counter.Add(static_cast<double>(passed) * 3, now, now);
    RC_ASSERT(!tick || passed != steps);
    if (tick) {
      const std::int64_t at = phase + (passed - 1) * period;
      RC_ASSERT(tick->after_ns <= at);
      RC_ASSERT(at <= tick->by_ns);
    }
    steps = passed;
  }
  RC_ASSERT(std::abs(*counter.period_seconds() * 1e9 - static_cast<double>(period)) < 2.0 * kMs);
}

struct Shape {
  int time_most_mhz = 5000;   // Times do not fall above this clock,
  int power_most_mhz = 5000;  // powers do not rise above this one.
  double noise = 0.001;
};

std::vector<Estimate> RowsOf(const Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Estimate> rows;
  for (int mhz = 900; mhz <= 1410; mhz += 15) {
    for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
      const double time_x = std::min(mhz, shape.time_most_mhz) / 1410.0;
      const double power_x = std::min(mhz, shape.power_most_mhz) / 1410.0;
      Estimate row;
      row.kind = {type, 0};
      row.mhz = mhz;
      row.seconds = (0.2 + 0.8 / time_x) * 0.05 * (1 + shape.noise * normal(random));
      row.joules =
          row.seconds * (90 + 330 * std::pow(power_x, 3)) * (1 + 3 * shape.noise * normal(random));
      rows.push_back(row);
    }
  }
  return rows;
}

TEST(ThrottledClocks, AreThoseAboveTheClockThatTheCardKeeps) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const std::vector<int> clocks =
        ThrottledClocks(RowsOf({.time_most_mhz = 1320, .power_most_mhz = 1320}, seed));
    ASSERT_FALSE(clocks.empty()) << seed;
    EXPECT_EQ(clocks.front(), 1410);
    EXPECT_NEAR(clocks.back(), 1335, 30) << seed;
  }
}

TEST(ThrottledClocks, NoneWhereTheCardFollows) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(ThrottledClocks(RowsOf({}, seed)).empty()) << seed;
    EXPECT_TRUE(ThrottledClocks(RowsOf({.noise = 0.01}, seed)).empty()) << seed;
  }
}

// It waits for its memory, at more and more watts.
TEST(ThrottledClocks, NoneWhereOnlyTimesAreAlike) {
  EXPECT_TRUE(ThrottledClocks(RowsOf({.time_most_mhz = 1250})).empty());
}

TEST(ThrottledClocks, NoneOfTooFewClocks) {
  EXPECT_TRUE(ThrottledClocks({}).empty());
  std::vector<Estimate> rows = RowsOf({.time_most_mhz = 1320, .power_most_mhz = 1320});
  std::erase_if(rows, [](const Estimate& row) { return row.mhz < 1350; });
  EXPECT_TRUE(ThrottledClocks(rows).empty());
}

// What sweeps say of waiting.
struct Told {
  Coverage coverage;
  double errors = 0;  // Sum over the rows of waiting, relative.
  double rows = 0;
  double curves = 0;  // Ranks that found a curve, and those that found one number alone.
  double numbers = 0;

  void AddSweep(const Noise& noise, double share, double power, int seed) {
    SimulatedPipeline pipeline = Modelled(seed % 2 == 0 ? 0.05 : 0.02, 16);
    pipeline.counter_seconds = 0.02 + 0.02 * (seed % 4);
    Disturb(noise, &pipeline);
    pipeline.waiting_share = share;
    pipeline.waiting_power = power;
    pipeline.seed = static_cast<std::uint64_t>(seed);
    const auto result = SimulateSweep(pipeline);
    ASSERT_TRUE(result) << result.error().message;
    CountRows(pipeline, *result, &coverage);
    for (const SimulatedRank& rank : result->ranks) {
      if (rank.blocking) ++(rank.waiting.empty() ? numbers : curves);
      for (const WaitingRow& row : rank.waiting) {
        errors += std::abs(row.power.watts / WaitingWatts(pipeline, row.mhz) - 1);
        ++rows;
      }
    }
  }
};

// Over fixed seeds, of all noises: 24 sweeps of three ranks. Powers between the clock and its cube.
TEST(WaitingCurveTest, SweepsFindWhatWaitingDrawsAtEachClock) {
  Told told;
  const std::vector<Noise> noises = Noises();
  for (int seed = 1; seed <= 24; ++seed) {
    told.AddSweep(noises[static_cast<std::size_t>(seed) % noises.size()], 0.4, 1 + seed % 3, seed);
  }
  EXPECT_GE(told.curves, 0.9 * (told.curves + told.numbers));
  EXPECT_GT(told.rows, 900);
  EXPECT_GE(told.coverage.waiting.percent(), 90);
  EXPECT_GE(told.coverage.energies.percent(), 90);
  EXPECT_LT(told.errors, 0.02 * told.rows);
  EXPECT_LT(static_cast<double>(told.coverage.doubtful_waiting), 0.05 * told.rows);
}

TEST(WaitingCurveTest, WhatMachinesDoBesidesIsWithinTheErrors) {
  for (const Noise& noise : Disturbances()) {
    Told told;
    for (int seed = 1; seed <= 2; ++seed) told.AddSweep(noise, 0.4, 2, seed);
    EXPECT_GT(told.rows, 60) << noise.name;
    EXPECT_GE(told.coverage.waiting.percent(), 85) << noise.name;
    EXPECT_GE(told.coverage.energies.percent(), 85) << noise.name;
  }
}

// Then it stays one number, as it is.
TEST(WaitingCurveTest, WaitingThatDoesNotDependOnTheClockIsOneNumber) {
  Told told;
  const std::vector<Noise> noises = Noises();
  for (int seed = 1; seed <= 10; ++seed) {
    told.AddSweep(noises[static_cast<std::size_t>(seed) % noises.size()], 0, 2, seed);
  }
  EXPECT_EQ(told.curves, 0);
  EXPECT_EQ(told.numbers, 30);
}

TEST(WaitingCurveTest, IsThatOfItsUnknowns) {
  WaitingCurve curve;
  curve.highest_mhz = 1400;
  curve.watts = {100, 40, 0};
  EXPECT_DOUBLE_EQ(curve.At(1400).watts, 100);
  EXPECT_DOUBLE_EQ(curve.At(700).watts, 70);
  EXPECT_DOUBLE_EQ(curve.At(1600).watts, 100);  // The card does not keep such a clock.
  curve.covariance.at(0, 0) = 4;
  curve.covariance.at(1, 1) = 100;
  EXPECT_DOUBLE_EQ(curve.At(1400).watts_std, 2);
  EXPECT_DOUBLE_EQ(curve.At(700).watts_std, std::hypot(2, 7.5));
  // 30 W less, by an error of 7.5.
  EXPECT_TRUE(curve.DependsOnClock(700));
  curve.watts[1] = 20;
  EXPECT_FALSE(curve.DependsOnClock(700));
}

}  // namespace
}  // namespace perseus::measure
