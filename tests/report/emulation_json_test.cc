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
  const OrderedJson json = OrderedJson::parse(*FormatEmulationJson(made.Full()));
  EXPECT_EQ(json.at("profile").at("file"), "sample.csv");
  EXPECT_EQ(json.at("pipelines"), 3);
  EXPECT_EQ(json.at("iterations").size(), 9u);
  EXPECT_EQ(json.at("power_w").size(), 50u);
  EXPECT_EQ(json.at("energy_j"), made.emulation.energy.total_joules());
  EXPECT_EQ(json.at("saving_percent"), 0);
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
