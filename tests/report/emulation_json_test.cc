// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "emulation_fixture.h"
#include "perseus/emulation_report.h"

namespace perseus::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

TEST(EmulationJsonTest, HoldsTheJobAndItsComparisons) {
  const EmulatedSample made = MakeEmulatedSample(9, 50);
  EmulationReportInput input = made.Full();
  input.run_spec = {.gpu_hours = 1000, .price_per_kwh = 0.12};
  const OrderedJson json = OrderedJson::parse(*FormatEmulationJson(input));
  EXPECT_EQ(json.at("profile").at("file"), "sample.csv");
  EXPECT_EQ(json.at("pipelines"), 3);
  EXPECT_EQ(json.at("iterations").size(), 9u);
  EXPECT_EQ(json.at("power_w").size(), 50u);
  EXPECT_EQ(json.at("energy_j"), made.emulation.energy.total_joules());
  EXPECT_EQ(json.at("saving_percent"), 0);
  // A policy without a plan has no figures, and says why.
  const OrderedJson& refused = json.at("policies").back();
  EXPECT_TRUE(refused.at("energy_j").is_null());
  EXPECT_TRUE(refused.at("why_not").is_string());
  EXPECT_EQ(json.at("run").at("max_clocks").at("price"), 660);
  EXPECT_TRUE(json.at("run").at("policy").at("carbon_kg").is_null());  // Not asked for.
  EXPECT_TRUE(json.at("power_budget").is_null());
}

TEST(EmulationJsonTest, AnswersAreOfTheWholeJob) {
  const EmulatedSample made = MakeEmulatedSample(9, 50);
  EmulationReportInput input = made.Full();
  PlanAnswer answer{made.sample.chosen, 0.5};
  answer.plan.iteration_time_seconds = 2;
  input.power_budget = {5000, answer};
  input.deadline = {1000, 100, answer};
  const OrderedJson json = OrderedJson::parse(*FormatEmulationJson(input));
  EXPECT_EQ(json.at("power_budget").at("energy_j"), 3 * answer.plan.energy_joules);
  EXPECT_EQ(json.at("power_budget").at("at_s"), 1.5);
  EXPECT_EQ(json.at("deadline").at("run_time_s"), 200);
}

TEST(EmulationJsonTest, SaysThatTheProfileIsModelled) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  EXPECT_FALSE(
      OrderedJson::parse(*FormatEmulationJson(made.Full())).at("profile").contains("modelled"));
  made.sample.pipeline.modelled = "MODELLED";
  EXPECT_EQ(OrderedJson::parse(*FormatEmulationJson(made.Full())).at("profile").at("modelled"),
            "MODELLED");
}

TEST(EmulationJsonTest, SameInputSameBytes) {
  const EmulatedSample made = MakeEmulatedSample(30, 300);
  EXPECT_EQ(*FormatEmulationJson(made.Full()), *FormatEmulationJson(made.Full()));
}

}  // namespace
}  // namespace perseus::report
