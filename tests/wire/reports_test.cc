// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace perseus::wire {
namespace {

using testing::HasSubstr;

// What one process writes, the other reads: all of it.
template <typename T>
void ExpectRoundTrip(const Message<T>& message, const T& object) {
  const std::string json = Write(message, object);
  const Result<T> read = Parse(message, json, "report");
  ASSERT_TRUE(read) << read.error().message << " in " << json;
  EXPECT_EQ(Write(message, *read), json);
}

TEST(ReportsTest, RanksReadAsTheyWereWritten) {
  ExpectRoundTrip(kRank, {.rank = 3, .dp_rank = 1, .pp_rank = 1});
  ExpectRoundTrip(kRank, {3, 1, 1, 0, "n1", Gpu{"GPU-1", "H100"}, {1000, 1400}});
}

TEST(ReportsTest, MeasurementsReadAsTheyWereWritten) {
  Measurements measured = {.rank = 1};
  ExpectRoundTrip(kMeasurements, measured);
  MeasuredRow row = {.stage = 1, .clock_mhz = 1400, .time_seconds = 0.5, .energy_joules = 100};
  measured.rows = {row};
  row.clock_mhz = kDefaultClockMhz;
  row.type = ComputationType::kRecompute;
  row.time_sources = {0.1, -0.2};
  row.temperature_celsius = 61.5;
  row.work = 1000;
  row.seconds_per_work = -1e-4;
  measured.default_clocks = {row};
  measured.blocking_power_watts = 90;
  measured.waiting = {{1000, 80, 1}};
  measured.sweep = SweepCost{10, 20, 300, -1, -2};
  measured.notes = {"odd"};
  measured.done = true;
  ExpectRoundTrip(kMeasurements, measured);
}

TEST(ReportsTest, ReportsReadAsTheyWereWritten) {
  Reports reports;
  ExpectRoundTrip(kReports, reports);
  IterationReport& report = reports.reports.emplace_back();
  report = {.rank = 1, .iteration = 10, .plan_version = 2, .time_seconds = 1.5};
  report.energy_joules = 400;
  report.clocks = ReportedClocks::kCoarse;
  report.busy_by_type = {0.5, 0.7};
  report.kinds = {{{1, ComputationType::kBackward, 1400}, 30, 0.02, true}};
  report.timeline = RankTimeline{{0, 10}, {5, 15}, {1}};
  ClientReport& client = reports.clients.emplace_back();
  client = {.rank = 1, .client = "c", .process = "pid 7", .state = "following", .error = "late"};
  client.counts = {{"calls", 5}, {"missed", 1}};
  client.ran = ComputationCounts{{{ComputationType::kForward, 1}, 8}};
  client.agent = AgentReport{"1.0", {"a power cap"}};
  client.conditions = RankConditions{.noise_variance = RankFigure{-1e-6, 1e-5},
                                     .latency_at = {{1000, RankFigure{0.02, 0.001}, 40}},
                                     .calls = 64};
  ExpectRoundTrip(kReports, reports);
}

TEST(ReportsTest, WhatIsNotKnownIsLeftOut) {
  const Result<Reports> read = Parse(kReports, R"({"new":1,"reports":[{"rank":0,"time_s":1,
      "clocks":"newer","kinds":[
      {"stage":0,"instruction":"a new one","frequency":1,"count":1,"time":1},
      {"stage":0,"instruction":"forward","frequency":1,"count":1,"time":1}]}],
      "clients":[{"rank":0,"conditions":{"noise_variance":1,"noise_correlation_std":0.1,
      "switch_latency_s":0.02,"switch_latency_s_std":0.001}}]})",
                                     "report");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->reports[0].clocks, ReportedClocks::kUnknown);
  EXPECT_EQ(read->reports[0].kinds.size(), 1U);
  // A figure has its error, or is none.
  const RankConditions& told = *read->clients[0].conditions;
  EXPECT_FALSE(told.noise_variance);
  EXPECT_FALSE(told.noise_correlation);
  EXPECT_TRUE(told.latency_seconds);
}

TEST(ReportsTest, WhatCannotBeIsRefusedWithItsPlace) {
  const auto fault = [](const std::string& json) {
    const auto read = Parse(kMeasurements, json, "request");
    return read ? "" : read.error().message;
  };
  const std::string row = R"("stage":0,"instruction":"forward","time":1,"energy":1)";
  EXPECT_EQ(fault(R"({"rank":0,"rows":[{"frequency":1000,)" + row + "}]}"), "");
  EXPECT_THAT(fault(R"({"rank":0,"rows":[{"frequency":0,)" + row + "}]}"),
              HasSubstr("rows[0].frequency: expected MHz above 0"));
  EXPECT_THAT(fault(R"({"rank":0,"rows":[{"frequency":1,"samples":0,)" + row + "}]}"),
              HasSubstr("rows[0].samples: expected a whole number from 1"));
  EXPECT_THAT(fault(R"({"rank":0,"waiting":[{"frequency":1}]})"),
              HasSubstr("'power_w' is missing"));
  const auto timeline = Parse(
      kReports, R"({"reports":[{"rank":0,"time_s":1,"timeline":{"begin_ns":[1],"end_ns":[]}}]})",
      "request");
  ASSERT_FALSE(timeline);
  EXPECT_THAT(timeline.error().message, HasSubstr("end_ns: expected as many as begins"));
}

}  // namespace
}  // namespace perseus::wire
