// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "perseus/report.h"
#include "report_fixture.h"

namespace perseus::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

TEST(PlanJsonTest, HoldsThePlanAndItsTable) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  sample.rows[0].name = "no_slowdown";
  sample.rows[1].feasible = false;
  ReportInput input = sample.Input();
  input.at = "1.0x";
  input.data_parallel = 3;
  input.prices = {{"--granularity stage", 2.5, 0}};
  input.files = {"plan.json"};
  const OrderedJson json = OrderedJson::parse(*FormatPlanSummaryJson(input));
  EXPECT_EQ(json.at("schedule"), "1f1b");
  EXPECT_EQ(json.at("virtual_stages"), 1);
  EXPECT_EQ(json.at("profile").at("file"), "sample.csv");  // No path.
  EXPECT_EQ(json.at("energy_j"), sample.chosen.energy_joules);
  EXPECT_EQ(json.at("job").at("energy_j"), 3 * sample.chosen.energy_joules);
  ASSERT_EQ(json.at("points").size(), sample.rows.size());
  EXPECT_EQ(json.at("points")[0].at("name"), "no_slowdown");
  EXPECT_EQ(json.at("points")[0].at("knob_changes"), sample.chosen.knob_changes);
  EXPECT_EQ(json.at("points")[1].at("feasible"), false);
  EXPECT_FALSE(json.at("points")[1].contains("energy_j"));
  EXPECT_EQ(json.at("constraints")[0].at("extra_energy_percent"), 2.5);
  EXPECT_EQ(json.at("files")[0], "plan.json");
}

TEST(PlanJsonTest, SaysHowFarTheBestPlanWithSharedClocksIs) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  EXPECT_FALSE(
      OrderedJson::parse(*FormatPlanSummaryJson(sample.Input())).contains("shared_clocks"));
  sample.chosen.shared_knobs = {
      .lower_bound_joules = 12.5, .gap_percent = 0.25, .proven_best = false};
  const OrderedJson json = OrderedJson::parse(*FormatPlanSummaryJson(sample.Input()));
  EXPECT_EQ(json.at("shared_clocks"),
            (OrderedJson{{"lower_bound_j", 12.5}, {"gap_percent", 0.25}, {"proven", false}}));
}

TEST(PlanJsonTest, TheFrontierNeedsNoPlan) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.chosen = nullptr;
  OrderedJson json = OrderedJson::parse(*FormatFrontierJson(input));
  ASSERT_EQ(json.at("frontier").size(), sample.frontier.points.size());
  EXPECT_EQ(json.at("frontier")[0].at("energy_j"), sample.frontier.points[0].energy_joules);
  EXPECT_EQ(json.at("cost_curve"), "measured");
  EXPECT_EQ(json.at("certified_error"), 0);
  sample.frontier.fitted = true;
  json = OrderedJson::parse(*FormatFrontierJson(input));
  EXPECT_TRUE(json.at("certified_error").is_null());
}

TEST(PlanJsonTest, SaysThatTheProfileIsModelled) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  sample.pipeline.modelled = "MODELLED";
  const OrderedJson json = OrderedJson::parse(*FormatPlanSummaryJson(sample.Input()));
  EXPECT_EQ(json.at("profile").at("modelled"), "MODELLED");
}

TEST(PlanJsonTest, BytesThatAreNotUtf8AreReplaced) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.remarks = {"\xff"};
  EXPECT_EQ(OrderedJson::parse(*FormatPlanSummaryJson(input)).at("remarks")[0], "\ufffd");
}

}  // namespace
}  // namespace perseus::report
