// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/rank_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "client/rank_conditions.h"
#include "client/server_messages.h"
#include "perseus/client.h"

namespace perseus::client {
namespace {

constexpr const char* kPlan = R"({"job":"j","version":12,"rank":3,"pipeline":0,"pp_rank":1,
  "reason":"target","iteration_time_s":0.31,"baseline_iteration_time_s":0.3,"saving_percent":9.5,
  "saving_interval":{"least_percent":9.1,"most_percent":10},
  "computations":[["F",1,0,1000,0.0,0.04],["F",1,1,1200,0.04,0.04],["B",1,0,1300,0.1,0.08],
                  ["F",1,2,1100,0.2,0.04,"B",1,1],["B",1,2,1250,0.3,0.08]]})";

TEST(RankPlan, IsReadFromTheServersAnswer) {
  const Result<RankPlan> plan = ParseRankPlan(kPlan);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->version, 12);
  EXPECT_DOUBLE_EQ(plan->iteration_time_seconds, 0.31);
  EXPECT_EQ(plan->saving_percent, 9.5);
  ASSERT_TRUE(plan->saving_interval);
  EXPECT_EQ(plan->saving_interval->least_percent, 9.1);
  EXPECT_EQ(plan->saving_interval->most_percent, 10);
  ASSERT_EQ(plan->rows.size(), 5U);
  EXPECT_EQ(plan->rows[2].id, (ComputationId{ComputationType::kBackward, 1, 0}));
  EXPECT_EQ(plan->rows[2].mhz, 1300);
  ASSERT_TRUE(plan->rows[3].fused);
  EXPECT_EQ(*plan->rows[3].fused, (ComputationId{ComputationType::kBackward, 1, 1}));
}

TEST(StepPlan, RowsThatMakeNoSenseAreRefused) {
  perseus_step_row row = {};
  row.fused_type = row.fused_stage = row.fused_microbatch = -1;
  row.clock_mhz = 1000;
  row.duration_seconds = 0.01;
  EXPECT_TRUE(StepPlanOf(1, &row, sizeof(row), 1));
  row.fused_type = 1;
  EXPECT_FALSE(StepPlanOf(1, &row, sizeof(row), 1));
  row.fused_stage = 0;
  EXPECT_FALSE(StepPlanOf(1, &row, sizeof(row), 1));
  row.fused_microbatch = 0;
  EXPECT_TRUE(StepPlanOf(1, &row, sizeof(row), 1));
}

TEST(StepPlan, HasAsManyRowsAsTheHeaderSays) {
  perseus_step_row row = {};
  row.fused_type = -1;
  row.clock_mhz = 1000;
  std::vector<perseus_step_row> rows(65'537, row);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].microbatch = static_cast<int>(i);
  const auto of = [&rows](std::size_t count) {
    return StepPlanOf(1, rows.data(), sizeof(perseus_step_row), count);
  };
  EXPECT_FALSE(of(0));
  EXPECT_TRUE(of(65'536));
  EXPECT_FALSE(of(65'537));
}

TEST(StepPlan, SaysWhichRowIsWrong) {
  perseus_step_row row = {};
  row.fused_type = -1;
  row.clock_mhz = 1000;
  std::vector<perseus_step_row> rows(3, row);
  const auto sentence = [&rows](std::int64_t iteration) {
    const auto plan = StepPlanOf(iteration, rows.data(), sizeof(perseus_step_row), rows.size());
    return plan ? "" : plan.error().message;
  };
  for (int i = 0; i < 3; ++i) rows[i].microbatch = i;
  EXPECT_EQ(sentence(0), "");
  EXPECT_TRUE(sentence(-7).starts_with("iteration -7")) << sentence(-7);
  rows[2].microbatch = 0;
  EXPECT_TRUE(sentence(0).starts_with("row 2: ")) << sentence(0);
  rows[2] = rows[1];
  rows[2].microbatch = 2;
  rows[1].clock_mhz = 0;
  EXPECT_TRUE(sentence(0).starts_with("row 1: 0 MHz")) << sentence(0);
}

// Rows that a newer header declares longer, and those of a size that cannot be.
TEST(StepPlan, RowsMayBeLonger) {
  struct LongerRow {
    perseus_step_row row;
    double next;
  };
  std::vector<LongerRow> rows(2);
  for (int i = 0; i < 2; ++i) {
    rows[i] = {};
    rows[i].row.fused_type = -1;
    rows[i].row.clock_mhz = 1000 + i;
    rows[i].row.microbatch = i;
  }
  const auto of = [&rows](std::size_t size) { return StepPlanOf(1, &rows[0].row, size, 2); };
  const auto plan = of(sizeof(LongerRow));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ((*plan)->rows[1].mhz, 1001);
  rows[1].next = 1;
  EXPECT_FALSE(of(sizeof(LongerRow)));
  EXPECT_FALSE(of(0));
  EXPECT_FALSE(of(7));
  EXPECT_FALSE(of(std::size_t{1} << 40));
}

TEST(RankPlan, TheComparisonIsReadUnlessItCannotBe) {
  const auto with = [](const std::string& comparison) {
    std::string text = kPlan;
    text.insert(1, "\"comparison\":" + comparison + ",");
    return ParseRankPlan(text);
  };
  EXPECT_FALSE(ParseRankPlan(kPlan)->comparison);
  EXPECT_EQ(with(R"({"every":100,"iterations":10})")->comparison,
            (ComparisonBlocks{.every = 100, .iterations = 10}));
  EXPECT_FALSE(with(R"({"every":10,"iterations":9})")->comparison);
  EXPECT_FALSE(with(R"({"every":0,"iterations":0})")->comparison);
  EXPECT_FALSE(with(R"({"every":10})"));
}

TEST(RankPlan, CoarserLevelsTakeTheHighestClockOfEachGroup) {
  const Result<RankPlan> plan = ParseRankPlan(kPlan);
  ASSERT_TRUE(plan);
  EXPECT_EQ(ClocksAtLevel(*plan, Level::kComputation),
            (std::vector<int>{1000, 1200, 1300, 1100, 1250}));
  // Warm-up: two forwards; steady: until the last forward; cool-down.
  EXPECT_EQ(ClocksAtLevel(*plan, Level::kPhase), (std::vector<int>{1200, 1200, 1300, 1300, 1250}));
  EXPECT_EQ(ClocksAtLevel(*plan, Level::kStage), (std::vector<int>(5, 1300)));
  EXPECT_TRUE(ClocksAtLevel(*plan, Level::kOff).empty());
}

// The rank has no forwards left when its first gradient comes.
TEST(RankPlan, ARecomputeIsNoForwardOfTheWarmUp) {
  const Result<RankPlan> plan = ParseRankPlan(
      R"({"version":1,"computations":[["F",0,0,1300,0,1],["R",0,0,1000,1,1],["B",0,0,1100,2,1]]})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->rows[1].id, (ComputationId{ComputationType::kRecompute, 0, 0}));
  EXPECT_EQ(ClocksAtLevel(*plan, Level::kPhase), (std::vector<int>{1300, 1100, 1100}));
}

TEST(RankPlan, WrongAnswersNameTheField) {
  for (const auto& [from, to, expected] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\"F\",1,0,1000", "\"X\",1,0,1000", "computations[0][0]"},
           {"1,0,1000", "1,0,0", "computations[0][3]"},
           {"0.1,0.08", "0.1", "computations[2]"},
           {"\"version\":12", "\"version\":1.5", "version"},
           {"\"iteration_time_s\":0.31", "\"iteration_time_s\":1e300", "iteration_time_s"},
           {"\"iteration_time_s\":0.31", "\"iteration_time_s\":-1", "iteration_time_s"},
           {"\"version\":12,", "", "version"}}) {
    std::string json = kPlan;
    json.replace(json.find(from), from.size(), to);
    const Result<RankPlan> plan = ParseRankPlan(json);
    ASSERT_FALSE(plan) << json;
    EXPECT_NE(plan.error().message.find(expected), std::string::npos) << plan.error().message;
  }
}

RC_GTEST_PROP(RankPlan, AnyBytesAreSafe, (const std::string& noise)) {
  static_cast<void>(ParseRankPlan(noise));
  std::string json = kPlan;
  const std::size_t at = *rc::gen::inRange<std::size_t>(0, json.size());
  json[at] = *rc::gen::arbitrary<char>();
  static_cast<void>(ParseRankPlan(json));
  static_cast<void>(ParseJob(noise));
  static_cast<void>(ParseStragglerIds(noise, 1));
  static_cast<void>(ErrorSentence(500, noise));
}

TEST(ServerMessages, StragglersOfARankAreFound) {
  const auto ids = ParseStragglerIds(
      R"({"stragglers":[{"straggler_id":"a","rank":3},{"straggler_id":7,"rank":3},
          {"straggler_id":"c","rank":4},{"straggler_id":"d","pipeline":1}]})",
      3);
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(*ids, (std::vector<std::string>{"a", "7"}));
}

TEST(ServerMessages, ErrorsBecomeSentences) {
  EXPECT_EQ(ErrorSentence(404, R"({"error":{"code":"not_found","message":"there is no job x"}})"),
            "there is no job x (status 404)");
  EXPECT_EQ(ErrorSentence(502, "<html>"), "status 502: <html>");
}

TEST(LatencyRecord, KeepsQuantilesAndAHistogram) {
  LatencyRecord latency;
  EXPECT_EQ(latency.MedianNs(), LatencyRecord::kUnmeasuredNs);
  for (int i = 1; i <= 100; ++i)
    latency.AddCall(1410, i * 100'000);  // The newest 64: 3.7 to 10 ms.
  EXPECT_EQ(latency.LeastNs(1410), 3'700'000);
  EXPECT_NEAR(static_cast<double>(latency.MedianNs()), 6.85e6, 1e5);
  EXPECT_NEAR(static_cast<double>(latency.HighNs(1410)), 9.4e6, 1e5);
  std::uint64_t all = 0;
  for (const std::uint64_t count : latency.buckets()) all += count;
  EXPECT_EQ(all, 100U);
  // Below 2^4 * 10 us = 160 us: one, of 100 us.
  EXPECT_EQ(latency.buckets()[4], 1U);
  latency.AddSettling(1410, 2'000'000);
  EXPECT_EQ(latency.LeastNs(1410), 5'700'000);
}

// What clocks take to settle after the call differs by clock, too.
TEST(LatencyRecord, KnowsClocksThatSettleLater) {
  LatencyRecord latency;
  for (int i = 0; i < 8; ++i) {
    for (const int mhz : {600, 1410}) latency.AddCall(mhz, 10'000'000);
  }
  for (const std::int64_t ms : {29, 31}) latency.AddSettling(600, ms * 1'000'000);
  EXPECT_EQ(latency.Settlings(600), 2);
  EXPECT_EQ(latency.SettlingNs(1410), 30'000'000);  // As all, until it is known.
  for (const std::int64_t ms : {2, 4, 3}) latency.AddSettling(1410, ms * 1'000'000);
  EXPECT_EQ(latency.SettlingNs(600), 30'000'000);
  EXPECT_EQ(latency.SettlingNs(1410), 3'000'000);
  EXPECT_EQ(latency.HighNs(1410), 13'000'000);
  latency.AddSettling(1410, 3'000'000);
  // Two squares of 1 ms at each clock, of four degrees of freedom: a spread of 1 ms.
  EXPECT_EQ(latency.HighNs(1410), 14'300'000);
  EXPECT_EQ(latency.LeastNs(1410), 10'800'000);
  EXPECT_EQ(latency.HighNs(600), 41'300'000);
  const std::optional<LatencyFigures> figures = latency.Figures();
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->spread_seconds.value, 0.001, 1e-12);
  ASSERT_EQ(figures->of_clock.size(), 2U);
  EXPECT_NEAR(figures->of_clock[0].seconds.value, 0.040, 1e-12);
  EXPECT_NEAR(figures->of_clock[0].seconds.error, std::hypot(0.0005, 0.001 / std::sqrt(2.0)),
              1e-12);
  EXPECT_NEAR(figures->of_clock[1].seconds.value, 0.013, 1e-12);
  // Of a clock whose settling was not measured: the mean of the others, and what they differ by.
  latency.AddCall(900, 10'000'000);
  const ClockLatencyFigures guess = latency.Figures()->of_clock[1];
  EXPECT_EQ(guess.mhz, 900);
  EXPECT_NEAR(guess.seconds.value, 0.022, 1e-12);
  EXPECT_GT(guess.seconds.error, 0.013);
}

// A clock with enough calls is called for ahead by its own; others by those of all.
TEST(LatencyRecord, KnowsClocksThatTakeLonger) {
  LatencyRecord latency;
  for (int i = 0; i < 40; ++i) {
    latency.AddCall(1410, 10'000'000 + (i % 2) * 2'000'000);
    latency.AddCall(600, 60'000'000 + (i % 2) * 2'000'000);
  }
  for (int i = 0; i < 3; ++i) latency.AddCall(900, 30'000'000);
  EXPECT_EQ(latency.LeastNs(1410), 10'000'000);
  EXPECT_EQ(latency.HighNs(1410), 12'000'000);
  EXPECT_EQ(latency.LeastNs(600), 60'000'000);
  EXPECT_EQ(latency.HighNs(600), 62'000'000);
  EXPECT_EQ(latency.HighNs(900), 62'000'000);
  EXPECT_EQ(latency.LeastNs(900), 10'000'000);
  const std::optional<LatencyFigures> figures = latency.Figures();
  ASSERT_TRUE(figures);
  EXPECT_NEAR(figures->spread_seconds.value, 0.001, 1e-9);  // Not what clocks differ by.
  ASSERT_EQ(figures->of_clock.size(), 3U);
  const ClockLatencyFigures& slow = figures->of_clock.front();
  EXPECT_EQ(slow.mhz, 600);
  EXPECT_EQ(slow.calls, 40);
  EXPECT_NEAR(slow.seconds.value, 0.061, 0.0011);
  EXPECT_NEAR(figures->of_clock[1].seconds.error, 1.25 * 0.001 / std::sqrt(3.0), 1e-9);
}

}  // namespace
}  // namespace perseus::client
