// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/profile_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace perseus::client {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A GPU on an imaginary clock: each type has its watts at a clock, waiting has
// its own, and the counter steps every `period_ns`.
class SweepTest : public testing::Test {
 protected:
  void Pass(std::int64_t ns, double watts) {
    const std::int64_t end = now_ + ns;
    while (now_ < end) {
      const std::int64_t next = std::min(end, now_ + kMs);
      joules_ += watts * static_cast<double>(next - now_) * 1e-9;
      now_ = next;
      if (counts_ && now_ / period_ns_ != counted_period_) {
        counted_period_ = now_ / period_ns_;
        counter_ = joules_;
      }
      sweep_->AddEnergy(counter_, now_);
    }
  }

  void Say(EventKind kind, ComputationType type = ComputationType::kForward) {
    sweep_->Handle(
        {.kind = kind, .type = type, .stage = 2, .microbatch = -1, .value = 0, .ticks = 0}, now_);
  }

  void Compute(ComputationType type) {
    const bool forward = type == ComputationType::kForward;
    const double mhz = sweep_->clock_mhz();
    Say(EventKind::kBegin, type);
    // 30 and 60 ms at 1000 MHz.
    Pass(static_cast<std::int64_t>((forward ? 30e6 : 60e6) * 1000 / mhz), Watts(type, mhz));
    Say(EventKind::kEnd, type);
  }

  double Watts(ComputationType type, double mhz) const {
    const double dynamic = std::pow(mhz / 1000, exponent_);
    return 80 + dynamic * (type == ComputationType::kForward ? 150 : 200);
  }

  void Iterate() {
    Say(EventKind::kStepBegin);
    for (int i = 0; i < 4; ++i) Compute(ComputationType::kForward);
    Pass(50 * kMs, kWaitingWatts);
    for (int i = 0; i < 4; ++i) {
      Compute(ComputationType::kBackward);
      Pass(15 * kMs, kWaitingWatts);
    }
    Say(EventKind::kStepEnd);
    now_ += 7 * kMs;
  }

  // Until it is done; how many iterations that took.
  int Sweep() {
    int iterations = 0;
    int mhz = 0;
    while (!sweep_->done() && iterations < 1000) {
      if (sweep_->clock_mhz() != mhz) {
        mhz = sweep_->clock_mhz();
        sweep_->ClockInEffect(now_ + 15 * kMs);
      }
      Iterate();
      ++iterations;
    }
    for (const Measurement& row : sweep_->TakeMeasurements()) rows_.push_back(row);
    return iterations;
  }

  static constexpr double kWaitingWatts = 70;
  std::optional<ProfileSweep> sweep_;
  std::int64_t now_ = 5'000 * kMs;
  std::int64_t period_ns_ = 20 * kMs;
  std::int64_t counted_period_ = 0;
  bool counts_ = true;
  double joules_ = 1000;
  double counter_ = 1000;
  double exponent_ = 2;
  std::vector<Measurement> rows_;
};

TEST_F(SweepTest, MeasuresEachTypeFromTheHighestClockDown) {
  sweep_.emplace(std::vector<int>{800, 900, 1000}, SweepSettings{.iterations = 6});
  Sweep();
  ASSERT_EQ(rows_.size(), 6U);
  EXPECT_EQ(rows_.front().mhz, 1000);
  EXPECT_EQ(rows_.back().mhz, 800);
  for (const Measurement& row : rows_) {
    const double mhz = row.mhz;
    const double seconds = (row.type == ComputationType::kForward ? 0.030 : 0.060) * 1000 / mhz;
    EXPECT_EQ(row.stage, 2);
    EXPECT_GE(row.samples, 24);
    EXPECT_NEAR(row.seconds, seconds, 1e-6);
    // The counter's steps blur the borders of computations.
    EXPECT_NEAR(row.joules, seconds * Watts(row.type, mhz), 0.04 * row.joules);
  }
  ASSERT_TRUE(sweep_->blocking_watts());
  EXPECT_NEAR(*sweep_->blocking_watts(), kWaitingWatts, 0.15 * kWaitingWatts);
}

TEST_F(SweepTest, StopsWhenEnergyHasRisenForFiveClocks) {
  std::vector<int> clocks;
  for (int mhz = 300; mhz <= 1400; mhz += 50) clocks.push_back(mhz);
  exponent_ = 0;  // Power does not fall with the clock: slower is dearer at once.
  sweep_.emplace(clocks, SweepSettings{.iterations = 3});
  Sweep();
  EXPECT_EQ(rows_.size(), 2U * 6);  // One, and five that rise.
}

TEST_F(SweepTest, ACounterThatStandsStillIsNoData) {
  counts_ = false;
  sweep_.emplace(std::vector<int>{900, 1000}, SweepSettings{.iterations = 2});
  const int iterations = Sweep();
  EXPECT_TRUE(rows_.empty());
  EXPECT_FALSE(sweep_->blocking_watts());
  EXPECT_TRUE(sweep_->TakeComplaint());
  EXPECT_LT(iterations, 100);  // It gives up.
}

TEST_F(SweepTest, GivesUpSoonWhereTheCounterNeverMoves) {
  counts_ = false;
  std::vector<int> clocks;
  for (int mhz = 200; mhz <= 2000; mhz += 15) clocks.push_back(mhz);
  sweep_.emplace(clocks, SweepSettings{.iterations = 2});
  EXPECT_LT(Sweep(), 40);  // Of two clocks, not of 121.
  EXPECT_TRUE(rows_.empty());
  EXPECT_TRUE(sweep_->TakeComplaint());
}

TEST_F(SweepTest, WhatWasSeenBeforeTheClockWasLostDoesNotCount) {
  sweep_.emplace(std::vector<int>{1000}, SweepSettings{.iterations = 3});
  sweep_->ClockInEffect(now_);
  Iterate();
  Iterate();
  sweep_->ClockLost();
  Iterate();  // At the driver's clock.
  EXPECT_FALSE(sweep_->done());
  Sweep();
  ASSERT_EQ(rows_.size(), 2U);
  EXPECT_LE(rows_.front().samples, 4 * 4);
}

TEST_F(SweepTest, StepsOverClocksAndStopsAtTheLowestWanted) {
  sweep_.emplace(std::vector<int>{700, 800, 900, 1000, 1100},
                 SweepSettings{.iterations = 3, .stride = 2, .least_mhz = 800});
  Sweep();
  std::map<int, int> of_clock;
  for (const Measurement& row : rows_) ++of_clock[row.mhz];
  EXPECT_EQ(of_clock, (std::map<int, int>{{1100, 2}, {900, 2}}));
}

TEST_F(SweepTest, AnIterationAtTheOldClockDoesNotCount) {
  sweep_.emplace(std::vector<int>{1000}, SweepSettings{.iterations = 1});
  Iterate();  // The clock is not in effect yet.
  EXPECT_TRUE(sweep_->TakeMeasurements().empty());
  EXPECT_FALSE(sweep_->done());
}

TEST(PowerFit, TellsKindsApart) {
  PowerFit fit(2);
  for (int i = 1; i <= 6; ++i) fit.Add({0.1 * i, 0.5}, 0.1 * i * 300 + 0.5 * 80);
  const auto watts = fit.Solve();
  ASSERT_TRUE(watts);
  EXPECT_NEAR((*watts)[0], 300, 1e-6);
  EXPECT_NEAR((*watts)[1], 80, 1e-6);
}

TEST(PowerFit, SaysNothingOfOneMix) {
  PowerFit fit(2);
  for (int i = 1; i <= 9; ++i) fit.Add({0.2 * i, 0.1 * i}, 70.0 * i);
  EXPECT_FALSE(fit.Solve());
}

}  // namespace
}  // namespace perseus::client
