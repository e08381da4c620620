// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/iteration_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <variant>
#include <vector>

namespace perseus::server {
namespace {

const store::IterationSummary* Of(const std::vector<store::Fact>& facts, std::int64_t version) {
  for (const store::Fact& fact : facts) {
    const auto* const sum = std::get_if<store::IterationSummary>(&fact);
    if (sum != nullptr && sum->plan_version == version) return sum;
  }
  return nullptr;
}

// What is stored of a version is replaced, so it must never begin again at nothing.
TEST(IterationSumsTest, NoSumIsForgottenAfterThousandsOfVersions) {
  IterationSums sums("j-1", {});
  for (int i = 0; i < 500; ++i) {
    sums.Add({.plan_version = 1, .time_seconds = 2, .clocks = ReportedClocks::kMaximum});
    sums.Add({.plan_version = 1, .time_seconds = 3, .clocks = ReportedClocks::kPlan});
  }
  ASSERT_NE(Of(sums.Take(), 0), nullptr);
  for (int version = 2; version < 3000; ++version) {
    sums.Add({.plan_version = version, .time_seconds = 1, .clocks = ReportedClocks::kPlan});
  }
  static_cast<void>(sums.Take());
  // A late report of an old version, and one of maximum clocks.
  sums.Add({.plan_version = 1, .time_seconds = 3, .clocks = ReportedClocks::kPlan});
  sums.Add({.plan_version = 2999, .time_seconds = 2, .clocks = ReportedClocks::kMaximum});
  const std::vector<store::Fact> facts = sums.Take();
  EXPECT_EQ(facts.size(), 2U);
  EXPECT_EQ(Of(facts, 0)->reports, 501);
  EXPECT_EQ(Of(facts, 1)->reports, 501);
  EXPECT_EQ(Of(facts, 1)->total_seconds, 1503);
}

TEST(IterationSumsTest, WhatTheStoreRefusedIsWrittenAgain) {
  IterationSums sums("j-1", {});
  sums.Add({.plan_version = 3, .time_seconds = 2, .clocks = ReportedClocks::kPlan});
  const std::vector<store::Fact> refused = sums.Take();
  EXPECT_FALSE(sums.has_news());
  sums.Unwritten(refused);
  sums.Add({.plan_version = 3, .time_seconds = 2, .clocks = ReportedClocks::kPlan});
  EXPECT_EQ(Of(sums.Take(), 3)->reports, 2);
}

TEST(IterationSumsTest, CountsTheReportsThatTheStoreDoesNotHave) {
  IterationSums sums("j-1", {});
  const auto add = [&](std::int64_t version) {
    sums.Add({.plan_version = version, .time_seconds = 2, .clocks = ReportedClocks::kPlan});
  };
  add(3);
  add(3);
  const std::vector<store::Fact> first = sums.Take();
  add(3);
  add(4);
  const std::vector<store::Fact> second = sums.Take();
  EXPECT_EQ(sums.unwritten_reports(), 4);
  sums.Written(first);
  EXPECT_EQ(sums.unwritten_reports(), 2);
  sums.Written(second);
  EXPECT_EQ(sums.unwritten_reports(), 0);
  sums.Written(first);
  EXPECT_EQ(sums.unwritten_reports(), 0);
}

// After a rest of the job, or a start of the server.
TEST(IterationSumsTest, WhatIsStoredGoesOn) {
  const store::IterationSummary stored{.job = "j-1",
                                       .plan_version = 1,
                                       .reports = 500,
                                       .total_seconds = 750,
                                       .least_seconds = 1,
                                       .most_seconds = 2};
  IterationSums sums("j-1", {.iterations = {stored}});
  EXPECT_FALSE(sums.has_news());
  EXPECT_EQ(sums.All().at(0).reports, 500);
  sums.Add({.plan_version = 1, .time_seconds = 1.5, .clocks = ReportedClocks::kPlan});
  const std::vector<store::Fact> facts = sums.Take();
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(Of(facts, 1)->reports, 501);
  EXPECT_EQ(Of(facts, 1)->total_seconds, 751.5);
  EXPECT_EQ(Of(facts, 1)->least_seconds, 1);
  EXPECT_EQ(sums.unwritten_reports(), 1);
  sums.Written(facts);
  EXPECT_EQ(sums.unwritten_reports(), 0);
}

}  // namespace
}  // namespace perseus::server
