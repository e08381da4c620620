// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/drift_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "support/mentions.h"

namespace perseus::server {
namespace {

// Stage 0 forward: 0.1 s at 1400 MHz, exact; 0.2 s at 1000 MHz, with 2 % of spread.
Profile SomeProfile() {
  return *ParseProfile(
      "stage,instruction,frequency,time,energy,time_std\n"
      "0,forward,1400,0.1,10,0\n0,forward,1000,0.2,8,0.004\n"
      "0,backward,1400,0.2,20,0\n",
      "csv");
}

KindReport Report(double seconds, std::int64_t count = 50, int clock_mhz = 1400) {
  return {.key = {.clock_mhz = clock_mhz}, .count = count, .time_seconds = seconds};
}

std::vector<DriftNews> AddTimes(DriftWatch* watch, int times, const KindReport& report) {
  std::vector<DriftNews> news;
  for (int i = 0; i < times; ++i) {
    for (const DriftNews& one : watch->Add(report, SomeProfile())) news.push_back(one);
  }
  return news;
}

TEST(DriftWatchTest, ALastingShiftIsToldOnceAndItsEnd) {
  DriftWatch watch;
  EXPECT_TRUE(AddTimes(&watch, 20, Report(0.101)).empty());
  const auto news = AddTimes(&watch, 20, Report(0.105));
  ASSERT_EQ(news.size(), 1U);
  EXPECT_FALSE(news[0].is_over);
  ASSERT_EQ(watch.Drifts().size(), 1U);
  EXPECT_NEAR(watch.Drifts()[0].ratio(), 1.05, 1e-9);
  EXPECT_THAT(DriftText(watch.Drifts()[0]), Mentions("0", "1400", "5.0", "0.105", "0.1", "250"));
  const auto end = AddTimes(&watch, 20, Report(0.1));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_TRUE(end[0].is_over);
  EXPECT_TRUE(watch.Drifts().empty());
}

TEST(DriftWatchTest, FasterIsDriftToo) {
  DriftWatch watch;
  ASSERT_EQ(AddTimes(&watch, 10, Report(0.09)).size(), 1U);
  EXPECT_THAT(DriftText(watch.Drifts()[0]), Mentions("10.0"));
}

TEST(DriftWatchTest, FewReportsOrFewComputationsSayNothing) {
  DriftWatch watch;
  EXPECT_TRUE(AddTimes(&watch, 4, Report(0.2, 1000)).empty());
  EXPECT_EQ(AddTimes(&watch, 1, Report(0.2, 1000)).size(), 1U);
  watch.Reset();
  EXPECT_TRUE(AddTimes(&watch, 19, Report(0.2, 10)).empty());
  EXPECT_EQ(AddTimes(&watch, 1, Report(0.2, 10)).size(), 1U);
}

TEST(DriftWatchTest, OneDisturbedReportIsNone) {
  DriftWatch watch;
  AddTimes(&watch, 10, Report(0.1));
  EXPECT_TRUE(AddTimes(&watch, 1, Report(0.5, 5000)).empty());
  EXPECT_TRUE(AddTimes(&watch, 10, Report(0.1)).empty());
}

TEST(DriftWatchTest, WhatTheProfileIsUnsureOfMayBeOffByMore) {
  DriftWatch watch;
  EXPECT_TRUE(AddTimes(&watch, 20, Report(0.21, 50, 1000)).empty());
  EXPECT_EQ(AddTimes(&watch, 20, Report(0.215, 50, 1000)).size(), 1U);
}

TEST(DriftWatchTest, WhatTheProfileDoesNotHaveIsPassedOver) {
  DriftWatch watch;
  EXPECT_TRUE(AddTimes(&watch, 20, Report(9, 50, 1300)).empty());
  KindReport stage = Report(9);
  stage.key.stage = 7;
  EXPECT_TRUE(AddTimes(&watch, 20, stage).empty());
  EXPECT_TRUE(AddTimes(&watch, 20, Report(9, 0)).empty());
}

// Noise that averages out to less than the limit never is drift; a shift beyond any noise
// always is, within ten reports.
RC_GTEST_PROP(DriftWatchRules, NoiseIsNoneAndShiftsAre, ()) {
  DriftWatch watch;
  for (int i = 0; i < 60; ++i) {
    const double off = *rc::gen::inRange(-19, 20) / 1000.0;
    RC_ASSERT(watch.Add(Report(0.1 * (1 + off)), SomeProfile()).empty());
  }
  const double shift = (*rc::gen::inRange(0, 2) == 0 ? 1 : -1) * *rc::gen::inRange(60, 500) / 1e3;
  std::size_t told = 0;
  for (int i = 0; i < 10; ++i) {
    const double off = *rc::gen::inRange(-19, 20) / 1000.0;
    told += watch.Add(Report(0.1 * (1 + shift + off)), SomeProfile()).size();
  }
  RC_ASSERT(told == 1U);
}

}  // namespace
}  // namespace perseus::server
