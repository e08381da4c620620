// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>

#include "server/detect/job_watch.h"

namespace perseus::server {
namespace {

TEST(RecentIterationsTest, NothingIsKnownBeforeTheFirst) {
  EXPECT_FALSE(RecentIterations().Figures());
}

TEST(RecentIterationsTest, AWildIterationDoesNotMoveTheMedian) {
  RecentIterations recent;
  for (const double seconds : {1.0, 1.1, 60.0}) recent.Add(seconds, std::nullopt, 7);
  const auto figures = recent.Figures();
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->iterations, 3U);
  EXPECT_EQ(figures->iteration_seconds, 1.1);
  EXPECT_EQ(figures->at_seconds, 7);
  EXPECT_FALSE(figures->watts);
}

TEST(RecentIterationsTest, PowerIsOfTheIterationsWhoseEnergyIsKnown) {
  RecentIterations recent;
  recent.Add(10, std::nullopt, 1);
  recent.Add(1, 300, 2);
  recent.Add(3, 500, 3);
  EXPECT_EQ(recent.Figures()->watts, 200);
}

TEST(RecentIterationsTest, OldIterationsAreForgotten) {
  RecentIterations recent;
  for (int i = 0; i < 3; ++i) recent.Add(9, 900, i);
  for (std::size_t i = 0; i < RecentIterations::kMost; ++i) recent.Add(2, 100, 10);
  EXPECT_EQ(recent.Figures()->iterations, RecentIterations::kMost);
  EXPECT_EQ(recent.Figures()->iteration_seconds, 2);
  EXPECT_EQ(recent.Figures()->watts, 50);
}

TEST(RecentIterationsTest, WhatWasSavedAndWhatWasLostNeverFall) {
  RecentIterations recent;
  recent.AddSaved(10, std::nullopt);
  EXPECT_EQ(recent.totals().predicted_joules, 10);
  EXPECT_EQ(recent.totals().measured_saved_joules, 0);
  EXPECT_EQ(recent.totals().measured_lost_joules, 0);
  recent.AddSaved(10, 7);
  recent.AddSaved(10, -3);
  EXPECT_EQ(recent.totals().predicted_joules, 30);
  EXPECT_EQ(recent.totals().measured_saved_joules, 7);
  EXPECT_EQ(recent.totals().measured_lost_joules, 3);
}

}  // namespace
}  // namespace perseus::server
