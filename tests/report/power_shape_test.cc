// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/power_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "emulation_fixture.h"
#include "markup.h"
#include "perseus/emulation_report.h"

namespace perseus::report {
namespace {

PowerShape MadeShape(double watts) {
  PowerShape shape;
  shape.interval_seconds = 0.005;
  shape.values = 1000;
  shape.ramp_1s = PowerRamp{watts, 2 * watts};
  shape.rms_watts = 3 * watts;
  shape.band = {0.2, 2};
  shape.band_rms_watts = 2.5 * watts;
  shape.band_share = 0.6944;
  shape.strongest_hz = 0.25;
  shape.ballast_joules = 80;
  double hz = 0.1;
  for (int k = 0; k < 48; ++k, hz *= 1.1167)
    shape.spectrum.push_back({hz, hz * 1.1167, watts / (k + 1)});
  return shape;
}

struct Shaped {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  EmulationReportInput input;

  Shaped() {
    made.spec.power_shape.band = {0.2, 2};
    made.emulation.power_shape = MadeShape(1000);
    input = made.Full();
    input.policies[0].shape = MadeShape(2000);
    input.policies[1].shape = MadeShape(1000);
    input.power_limits.ramp_watts_per_second = 3000;
    input.slower = {{2, 100, 8000, MadeShape(1600), false}, {2.1, 110, 7600, MadeShape(900), true}};
  }
};

TEST(PowerShapeReportTest, JsonHoldsEveryFigure) {
  const auto json = nlohmann::json::parse(*FormatEmulationJson(Shaped().input));
  const auto& shape = json.at("power_shape");
  EXPECT_EQ(shape.at("ramp_1s").at("fall_w_per_s"), 2000);
  EXPECT_TRUE(shape.at("ramp_100ms").is_null());
  EXPECT_EQ(shape.at("band").at("from_hz"), 0.2);
  EXPECT_EQ(shape.at("band").at("share"), 0.6944);
  EXPECT_EQ(shape.at("spectrum").size(), 48u);
  EXPECT_EQ(json.at("policies")[0].at("power_shape").at("rms_w"), 6000);
  EXPECT_TRUE(json.at("policies")[2].at("power_shape").is_null());  // Not stated.
  EXPECT_TRUE(json.at("policies")[3].at("power_shape").is_null());  // No plan.
  const auto& limits = json.at("power_limits");
  EXPECT_EQ(limits.at("ramp_w_per_s"), 3000);
  EXPECT_TRUE(limits.at("band_rms_w").is_null());
  EXPECT_EQ(limits.at("slower")[1].at("keeps"), true);
  EXPECT_EQ(limits.at("slower")[0].at("ramp_1s").at("rise_w_per_s"), 1600);
}

TEST(PowerShapeReportTest, WhatIsNotResolvedHasNoFigure) {
  Shaped shaped;
  shaped.input.power_limits = {.band_rms_watts = 1e9};
  for (PolicyRow& row : shaped.input.policies) row.shape.band_resolved = false;
  shaped.input.slower = {{2, 100, 8000, shaped.input.policies[0].shape, false}};
  shaped.made.emulation.power_shape.band_resolved = false;
  const auto json = nlohmann::json::parse(*FormatEmulationJson(shaped.input));
  for (const char* name : {"rms_w", "share", "strongest_hz"}) {
    EXPECT_TRUE(json.at("power_shape").at("band").at(name).is_null()) << name;
  }
  EXPECT_TRUE(json.at("power_limits").at("slower")[0].at("keeps").is_null());
  EXPECT_TRUE(json.at("power_limits").at("slower")[0].at("band_rms_w").is_null());
  const Table policies = ShapeTable(shaped.input);
  EXPECT_EQ(policies.rows[0].cells[4].text, "\u2013");
  EXPECT_EQ(policies.rows[0].cells[7].text, "not resolved");
  EXPECT_EQ(LimitTable(shaped.input).rows[0].cells.back().text, "not resolved");
}

TEST(PowerShapeReportTest, NothingIsSaidOfWhatIsNotStated) {
  const EmulatedSample made = MakeEmulatedSample(9, 50);
  const auto json = nlohmann::json::parse(*FormatEmulationJson(made.Full()));
  EXPECT_TRUE(json.at("power_shape").is_null());
  EXPECT_TRUE(json.at("power_limits").is_null());
  EXPECT_EQ(FormatEmulationHtml(made.Full())->find("as the grid sees it"), std::string::npos);
}

TEST(PowerShapeReportTest, TablesNameWhatKeepsTheLimits) {
  const Shaped shaped;
  const Table policies = ShapeTable(shaped.input);
  ASSERT_EQ(policies.rows.size(), 2u);
  ASSERT_EQ(policies.columns.size(), policies.rows[0].cells.size());
  EXPECT_EQ(policies.rows[0].cells[1].text, "+2.000 / \u22124.000");
  EXPECT_EQ(policies.rows[0].cells[7].text, "no");
  EXPECT_EQ(policies.rows[1].cells[7].text, "yes");
  EXPECT_EQ(policies.rows[1].css, "chosen");
  const Table slower = LimitTable(shaped.input);
  ASSERT_EQ(slower.rows.size(), 2u);
  ASSERT_EQ(slower.columns.size(), slower.rows[0].cells.size());
  EXPECT_EQ(slower.rows[1].cells.back().text, "yes");
}

TEST(PowerShapeReportTest, ThePageIsWellFormedAndHasTheSpectrum) {
  const Shaped shaped;
  const std::string html = *FormatEmulationHtml(shaped.input);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  EXPECT_NE(html.find("as the grid sees it"), std::string::npos);
  EXPECT_NE(html.find("frequency (Hz)"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_NE(DrawSpectrum(shaped.input).find(">0.2</text>"), std::string::npos);  // A tick.
}

}  // namespace
}  // namespace perseus::report
