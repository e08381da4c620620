// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/word_hash.h"
#include "switching/clock_replay.h"

namespace perseus::switching {
namespace {

using testing::ElementsAre;

constexpr int kFast = 0;
constexpr int kSlow = 1;
const WordHash kDraws(7);

// A computation as it ran.
struct Ran {
  bool late = false;
  double end = 0;
  std::vector<std::pair<int, double>> pieces;  // Knob, and until when.
  std::vector<std::pair<int, double>> waits;   // The same of the wait before it.
};

// Runs one computation that takes `fast` or twice as long.
Ran Compute(RankCaller* caller, double start, double fast) {
  Ran ran;
  ran.late = caller->Start(
      start, [&](int knob, double /*from*/, double to) { ran.waits.emplace_back(knob, to); });
  ran.end = caller->Run(
      start, [&](int knob) { return fast * (1 + knob); },
      [&](int knob, double /*from*/, double to, double /*share*/) {
        ran.pieces.emplace_back(knob, to);
      });
  caller->End(ran.end);
  return ran;
}

CostedPipeline WithKnobs() {
  CostedPipeline pipeline;
  for (int knob = 0; knob < 8; ++knob) {
    pipeline.knobs.push_back({.label = std::to_string(8 - knob), .number = 8.0 - knob});
  }
  return pipeline;
}

SwitchingRules Rules(CallAhead call_ahead, double latency) {
  return {{.latency_seconds = latency, .call_ahead = call_ahead}, WithKnobs()};
}

TEST(RankCallerTest, ClockIsInEffectAfterTheLatency) {
  const SwitchingRules rules = Rules(CallAhead::kNone, 2);
  const std::vector<int> knobs = {kSlow, kSlow};
  ClockState clock = SettledAt(kFast);
  RankCaller caller(rules, knobs, kDraws, &clock);
  const Ran first = Compute(&caller, 10, 4);
  EXPECT_TRUE(first.late);
  EXPECT_THAT(first.pieces, ElementsAre(std::pair(kFast, 12), std::pair(kSlow, 16)));
  EXPECT_FALSE(Compute(&caller, 16, 1).late);
  EXPECT_EQ(clock.calls, 1);
}

TEST(RankCallerTest, NewestOfThoseThatWaitWins) {
  const SwitchingRules rules = Rules(CallAhead::kNone, 2);
  const std::vector<int> knobs = {1, 2, 3, 3};
  ClockState clock = SettledAt(0);
  RankCaller caller(rules, knobs, kDraws, &clock);
  for (const double start : {0.0, 0.5, 1.0}) {
    EXPECT_TRUE(caller.Start(start));
    caller.End(start + 0.5);
  }
  EXPECT_TRUE(caller.Start(3.9));
  EXPECT_EQ(clock.in_effect, 1);
  EXPECT_EQ(clock.target, 3);
  EXPECT_EQ(clock.call_end_seconds, 4);
  caller.End(5);
  EXPECT_EQ(EndIteration(rules, kDraws, 5, &clock), 0);
  EXPECT_EQ(clock.in_effect, 3);
}

TEST(RankCallerTest, CallUnderWayEndsAlthoughTheOldClockIsWantedAgain) {
  const SwitchingRules rules = Rules(CallAhead::kNone, 2);
  const std::vector<int> knobs = {1, 0, 0};
  ClockState clock = SettledAt(0);
  RankCaller caller(rules, knobs, kDraws, &clock);
  Compute(&caller, 0, 1);
  const Ran second = Compute(&caller, 1, 10);
  EXPECT_FALSE(second.late);
  EXPECT_THAT(second.pieces, ElementsAre(std::pair(0, 2), std::pair(1, 4), std::pair(0, 12)));
  EXPECT_EQ(clock.calls, 2);
}

TEST(RankCallerTest, ClockAskedForAtTheEndOfTheOneBefore) {
  const SwitchingRules rules = Rules(CallAhead::kEnd, 2);
  const std::vector<int> knobs = {kSlow, kFast};
  ClockState clock = SettledAt(kFast);
  RankCaller caller(rules, knobs, kDraws, &clock);
  EXPECT_FALSE(Compute(&caller, 3, 1).late);  // Asked for at 0.
  EXPECT_FALSE(Compute(&caller, 7, 1).late);  // At 5.
  EXPECT_EQ(clock.calls, 2);
}

TEST(RankCallerTest, CallsKeepTheirDistance) {
  SwitchingRules rules = Rules(CallAhead::kNone, 1);
  rules.switching.min_interval_seconds = 5;
  const std::vector<int> knobs = {1, 0, 0};
  ClockState clock = SettledAt(0);
  RankCaller caller(rules, knobs, kDraws, &clock);
  Compute(&caller, 0, 1);  // Its clock comes as it ends.
  EXPECT_TRUE(caller.Start(2));
  EXPECT_EQ(clock.in_effect, 1);
  const double end = caller.Run(
      2, [](int knob) { return knob == 1 ? 20.0 : 10.0; }, [](int, double, double, double) {});
  EXPECT_EQ(end, 6 + 0.8 * 10);  // Called for at 5, there at 6.
  caller.End(end);
  EXPECT_EQ(clock.calls, 2);
  EXPECT_EQ(EndIteration(rules, kDraws, 7, &clock), 0);
  EXPECT_EQ(clock.allowed_seconds, 3);
}

TEST(RankCallerTest, WhatWaitsAtTheEndIsCalledForInTheNextIteration) {
  SwitchingRules rules = Rules(CallAhead::kNone, 1);
  rules.switching.min_interval_seconds = 9;
  ClockState clock = {.in_effect = 0, .newest = 1, .allowed_seconds = 4};
  EXPECT_EQ(EndIteration(rules, kDraws, 3, &clock), 0);
  EXPECT_EQ(clock.allowed_seconds, 1);
  EXPECT_EQ(EndIteration(rules, kDraws, 3, &clock), 1);
  EXPECT_EQ(clock, (ClockState{.in_effect = 1, .newest = 1, .allowed_seconds = 7}));
}

TEST(RankCallerTest, RestOfACallGoesOnInTheNextIteration) {
  const SwitchingRules rules = Rules(CallAhead::kNone, 2);
  ClockState clock = {.newest = 1, .target = 1, .calls = 1, .call_end_seconds = 11};
  EXPECT_EQ(EndIteration(rules, kDraws, 10, &clock), 0);
  EXPECT_EQ(clock, (ClockState{.newest = 1, .target = 1, .call_end_seconds = 1}));
  EXPECT_EQ(EndIteration(rules, kDraws, 1, &clock), 0);
  // States after calls that are over are alike, whenever they ended.
  EXPECT_EQ(clock, (ClockState{.in_effect = 1, .newest = 1}));
}

TEST(RankCallerTest, LatenciesSpreadByTheirNumber) {
  const SwitchingRules rules(
      {.latency_seconds = 2, .latency_spread_seconds = 0.5, .call_ahead = CallAhead::kNone},
      WithKnobs());
  const std::vector<int> knobs = {1, 0};
  ClockState clock = SettledAt(0);
  RankCaller caller(rules, knobs, kDraws, &clock);
  caller.Start(0);
  EXPECT_EQ(clock.call_end_seconds, 2 + 0.5 * kDraws.With(0).StandardDraw());
  caller.End(100);
  caller.Start(100);
  EXPECT_EQ(clock.call_end_seconds, 100 + (2 + 0.5 * kDraws.With(1).StandardDraw()));
}

// A rank on its own, iteration after iteration, with calls ahead of time.
class Predicted {
 public:
  // `leaps`: over rows among which nothing can be due, as MakeRows() makes possible.
  Predicted(const ClockSwitching& switching, std::vector<int> knobs, std::vector<Row> rows,
            bool leaps = true, int waiting_knob = kNoCall)
      : rules_(Predicts(switching), WithKnobs()), clock_(SettledAt(knobs.front())) {
    auto planned = std::make_shared<PlannedRows>();
    planned->first_row = {0, static_cast<int>(knobs.size())};
    planned->knobs = std::move(knobs);
    planned->rows = std::move(rows);
    if (waiting_knob != kNoCall) planned->waiting_knobs = {waiting_knob};
    if (leaps) FindNextOthers(planned.get());
    forecast_.Follow(planned);
  }

  static ClockSwitching Predicts(ClockSwitching switching) {
    switching.call_ahead = CallAhead::kPredicted;
    return switching;
  }

  // With these gaps and durations at the fast clock. Ends when its last row does.
  std::vector<Ran> Iterate(const std::vector<Row>& rows) {
    RankCaller caller(rules_, 0, kDraws, &forecast_, &clock_);
    std::vector<Ran> ran;
    double now = 0;
    for (const Row& row : rows) {
      ran.push_back(Compute(&caller, now + row.gap_seconds, row.duration_seconds));
      now = ran.back().end;
    }
    calls_ = clock_.calls + EndIteration(rules_, kDraws, now, &clock_);
    forecast_.EndIteration(now);
    return ran;
  }

  int calls() const { return calls_; }
  const Forecast& forecast() const { return forecast_; }

 private:
  SwitchingRules rules_;
  ClockState clock_;
  Forecast forecast_;
  int calls_ = 0;
};

// Calls are made ahead by what the clock that is called for takes.
TEST(RankCallerTest, ClocksHaveTheirOwnLatency) {
  // Clocks 8 and 7 of WithKnobs().
  const ClockSwitching switching = {.latency_seconds = 1, .latency_at = {{8, 3}, {7, 0.5}}};
  Predicted rank(switching, {kSlow, kFast}, {{8, 0}, {4, 0}});
  const std::vector<Ran> ran = rank.Iterate({{4, 0}, {4, 0}});
  EXPECT_FALSE(ran[1].late);
  EXPECT_NEAR(ran[0].end, 8, 1e-5);
  EXPECT_THAT(ran[1].pieces, ElementsAre(std::pair(kFast, ran[1].end)));
  // The spread is no more than the latency.
  const SwitchingRules rules(
      {.latency_seconds = 2, .latency_at = {{8, 3}, {7, 0.5}}, .latency_spread_seconds = 1},
      WithKnobs());
  EXPECT_EQ(rules.high_seconds(0), 3 + 1.3);
  EXPECT_EQ(rules.high_seconds(1), 0.5 + 1.3 * 0.5);
  EXPECT_EQ(rules.high_seconds(2), 2 + 1.3);
  EXPECT_EQ(rules.least_seconds(1), 0);
  EXPECT_EQ(rules.most_high_seconds, 3 + 1.3);
}

TEST(RankCallerTest, HigherClockIsThereInTime) {
  // The slow one lasts 4, the call takes 1: half a latency would be too late.
  Predicted rank({.latency_seconds = 1}, {kSlow, kFast}, {{4, 0}, {2, 0}});
  const std::vector<Ran> ran = rank.Iterate({{2, 0}, {2, 0}});
  EXPECT_FALSE(ran[1].late);
  EXPECT_THAT(ran[1].pieces, ElementsAre(std::pair(kFast, ran[1].end)));
  EXPECT_NEAR(ran[0].end, 4, 1e-5);  // A millionth of the latency early at most.
  EXPECT_EQ(rank.calls(), 2);
}

TEST(RankCallerTest, LowerClockCostsTheComputationBeforeNoMoreThanItsShare) {
  Predicted rank({.latency_seconds = 1, .max_early_loss = 0.25}, {kFast, kSlow}, {{4, 0}, {4, 0}});
  const std::vector<Ran> first = rank.Iterate({{4, 0}, {2, 0}});
  // In effect at 3 of 4: the quarter that is left takes twice as long, until 5.
  ASSERT_EQ(first[0].pieces.size(), 1);  // With no gap it is due a latency before the start.
  EXPECT_NEAR(first[0].end, 4, 1e-9);
  EXPECT_FALSE(first[1].late);
  // A gap lets it come early without loss.
  Predicted gap({.latency_seconds = 1}, {kFast, kSlow}, {{4, 0}, {4, 3}});
  const std::vector<Ran> second = gap.Iterate({{4, 0}, {2, 3}});
  EXPECT_EQ(second[0].end, 4);
  EXPECT_FALSE(second[1].late);
}

TEST(RankCallerTest, EarlyLossIsBoundedWhereLatenciesSpread) {
  // High 1.65, least 0 (1 - 1.1 below 0): due max(starts - high, end - loss).
  Predicted rank({.latency_seconds = 1, .latency_spread_seconds = 0.5, .max_early_loss = 0.1},
                 {kFast, kSlow}, {{4, 0}, {8, 0}});
  const std::vector<Ran> ran = rank.Iterate({{4, 0}, {4, 0}});
  EXPECT_LE(ran[0].end, 4 + 0.1 * 4);
}

TEST(RankCallerTest, LooksOverRowsThatAreShorterThanTheLatency) {
  // Calls take 5, rows 1: each is made several rows ahead.
  std::vector<int> knobs(40, kSlow);
  std::fill(knobs.begin() + 20, knobs.end(), kFast);
  Predicted rank({.latency_seconds = 5}, knobs, std::vector<Row>(40, {1, 0}));
  std::vector<Row> rows(40, {0.5, 0});
  std::fill(rows.begin() + 20, rows.end(), Row{1, 0});
  rank.Iterate(rows);
  const std::vector<Ran> ran = rank.Iterate(rows);
  EXPECT_FALSE(ran[20].late);
  EXPECT_NEAR(ran[19].end, 20, 1e-4);
  EXPECT_EQ(rank.calls(), 2);
}

TEST(RankCallerTest, NothingRunsSoTheNextClockIsCalledForAtOnce) {
  Predicted rank({.latency_seconds = 1}, {kFast, kSlow, kFast}, {{1, 0}, {2, 0}, {1, 0}});
  rank.Iterate({{1, 0}, {1, 9}, {1, 0}});
  // Nobody expected the wait; the clock was called for when it began.
  EXPECT_EQ(rank.forecast().rows[1].gap_seconds, 9);
  const std::vector<Ran> ran = rank.Iterate({{1, 0}, {1, 9}, {1, 0}});
  EXPECT_FALSE(ran[1].late);
  EXPECT_EQ(ran[0].end, 1);
}

constexpr int kWaiting = 2;

TEST(RankCallerTest, WaitsAtItsClockWhereTheGapIsSurelyLongEnough) {
  Predicted rank({.latency_seconds = 1}, {kFast, kFast}, {{1, 0}, {1, 20, 20}}, true, kWaiting);
  const std::vector<Row> rows = {{1, 0}, {1, 20}};
  rank.Iterate(rows);  // Nothing is known of the gap but what the plan says.
  EXPECT_EQ(rank.calls(), 0);
  // Half of the gap in doubt, then half of that: 20 - 4 x 5 is no time to wait.
  rank.Iterate(rows);
  rank.Iterate(rows);
  EXPECT_EQ(rank.calls(), 0);
  // 20 - 4 x 2.5 = 10 seconds after the end of the first, less a latency.
  const std::vector<Ran> ran = rank.Iterate(rows);
  EXPECT_EQ(rank.calls(), 2);
  EXPECT_FALSE(ran[1].late);
  EXPECT_THAT(ran[1].waits,
              ElementsAre(std::pair(kFast, 2), std::pair(kWaiting, 11), std::pair(kFast, 21)));
}

TEST(RankCallerTest, AWaitThatEndsEarlyCostsNoMoreThanALatencyAtItsClock) {
  Predicted rank({.latency_seconds = 1}, {kFast, kFast}, {{1, 0}, {8, 20, 20}}, true, kWaiting);
  for (int n = 0; n < 20; ++n) rank.Iterate({{1, 0}, {8, 20}});
  const std::vector<Ran> ran = rank.Iterate({{1, 0}, {8, 5}});
  EXPECT_TRUE(ran[1].late);
  EXPECT_THAT(ran[1].pieces,
              ElementsAre(testing::Pair(kWaiting, 7), testing::Pair(kFast, testing::_)));
  // The next gap is in doubt.
  EXPECT_EQ(rank.forecast().rows[1].doubt_seconds, 7.5);
}

TEST(RankCallerTest, AShortGapKeepsItsClock) {
  Predicted rank({.latency_seconds = 1, .min_interval_seconds = 2}, {kFast, kFast},
                 {{1, 0}, {8, 3.9, 3.9}}, true, kWaiting);
  for (int n = 0; n < 20; ++n) rank.Iterate({{1, 0}, {8, 3.9}});
  EXPECT_EQ(rank.calls(), 0);  // Down, interval and up take 4.
  for (int n = 0; n < 20; ++n) rank.Iterate({{1, 0}, {8, 4.2}});
  EXPECT_EQ(rank.calls(), 2);
}

TEST(RankCallerTest, ExpectsTheMeanOfOldAndNew) {
  Predicted rank({.latency_seconds = 0.1}, {kFast, kFast}, {{1, 0}, {1, 0}});
  rank.Iterate({{3, 0.5}, {1, 0}});
  EXPECT_EQ(rank.forecast().rows[0], (Row{3, 0.5}));
  EXPECT_EQ(rank.forecast().wrap_gap_seconds[0], 0);
  rank.Iterate({{4, 0.25}, {1, 1}});
  EXPECT_EQ(rank.forecast().rows[0], (Row{3.5, 0.375}));
  EXPECT_EQ(rank.forecast().rows[1], (Row{1, 0.5}));
  EXPECT_EQ(rank.forecast().wrap_gap_seconds[0], 0.25);
}

// The same to the last bit, whatever the latency: only work is saved.
RC_GTEST_PROP(RankCallerTest, LeapsChangeNothing, (unsigned seed)) {
  std::mt19937 random(seed);
  const auto share = [&] { return static_cast<double>(random() % 1000) / 1000; };
  const int size = 2 + static_cast<int>(random() % 80);
  const int run = 1 + static_cast<int>(random() % 40);  // Of rows with one knob.
  std::vector<int> knobs;
  std::vector<Row> planned;
  for (int k = 0; k < size; ++k) {
    knobs.push_back(random() % run == 0 || k == 0 ? static_cast<int>(random() % 2) : knobs.back());
    planned.push_back({0.1 + share(), random() % 2 == 0 ? 0 : share()});
  }
  ClockSwitching switching;
  switching.latency_seconds = share() * size * (random() % 3 == 0 ? 2 : 0.3);
  if (random() % 2 == 0) switching.latency_spread_seconds = share() * switching.latency_seconds;
  if (random() % 3 == 0) switching.min_interval_seconds = share() * size;
  Predicted leaping(switching, knobs, planned);
  Predicted walking(switching, knobs, planned, false);
  for (int iteration = 0; iteration < 4; ++iteration) {
    std::vector<Row> rows;
    for (int k = 0; k < size; ++k) rows.push_back({0.05 + share(), share()});
    const std::vector<Ran> ran = leaping.Iterate(rows);
    const std::vector<Ran> same = walking.Iterate(rows);
    for (int k = 0; k < size; ++k) {
      RC_ASSERT(ran[k].late == same[k].late);
      RC_ASSERT(ran[k].pieces == same[k].pieces);
    }
    RC_ASSERT(leaping.calls() == walking.calls());
  }
}

// Without noise, and rows longer than the latency, every clock is there in time
// and costs its neighbour at most its share, from the second iteration on.
RC_GTEST_PROP(RankCallerTest, PredictionsThatHoldMakeNobodyLate, (unsigned seed)) {
  std::mt19937 random(seed);
  const auto share = [&] { return static_cast<double>(random() % 1000) / 1000; };
  const int size = 2 + static_cast<int>(random() % 20);
  std::vector<int> knobs;
  std::vector<Row> rows;
  std::vector<Row> planned;
  for (int k = 0; k < size; ++k) {
    knobs.push_back(static_cast<int>(random() % 2));
    rows.push_back({1.2 + share(), random() % 2 == 0 ? 0 : share()});
    planned.push_back({rows[k].duration_seconds * (1 + knobs[k]), rows[k].gap_seconds});
  }
  Predicted rank({.latency_seconds = 1}, knobs, planned);
  rank.Iterate(rows);
  const std::vector<Ran> ran = rank.Iterate(rows);
  double now = 0;
  for (int k = 0; k < size; ++k) {
    RC_ASSERT(!ran[k].late);
    now += rows[k].gap_seconds;
    const double longest = planned[k].duration_seconds * 1.05;
    RC_ASSERT(ran[k].end - now <= longest + 1e-5);
    now = ran[k].end;
  }
}

}  // namespace
}  // namespace perseus::switching
