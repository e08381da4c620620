// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/frontier_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "report_fixture.h"

namespace perseus::report {
namespace {

// Every coordinate of the drawing is a number inside of it.
void ExpectInside(const std::string& svg) {
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf\""), std::string::npos);
  const std::regex number(" (?:x|x1|x2|cx)=\"([-0-9.]+)\"");
  for (auto match = std::sregex_iterator(svg.begin(), svg.end(), number);
       match != std::sregex_iterator(); ++match) {
    const double x = std::stod((*match)[1]);
    EXPECT_GE(x, 0) << match->str();
    EXPECT_LE(x, 1120) << match->str();
  }
}

TEST(FrontierPlotTest, ShowsCurvePointsAndTimes) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  const FrontierPlot plot = DrawFrontier(sample.Input());
  ExpectInside(plot.svg);
  std::size_t circles = 0;
  for (std::size_t at = 0; (at = plot.svg.find("class=\"point\"", at)) != std::string::npos; ++at) {
    ++circles;
  }
  EXPECT_EQ(circles, sample.rows.size());
  for (const char* part :
       {"class=\"bound\"", "class=\"baseline\"", "class=\"chosen\"", ">economic</tspan>", ">T*<",
        ">min</tspan>", "iteration time (s)", "energy per iteration (kJ)", "<desc"}) {
    EXPECT_NE(plot.svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(plot.hover.at("curve").size(), sample.frontier.points.size() + 1);
}

TEST(FrontierPlotTest, ASinglePointIsAFrontierToo) {
  Sample sample = MakeSample("1f1b", 1, 1, 1);
  sample.frontier.points = {sample.frontier.points.front()};
  sample.frontier.economic_seconds = sample.frontier.fastest_seconds;
  sample.frontier.tstar_seconds = sample.frontier.fastest_seconds;
  sample.rows.resize(1);
  ExpectInside(DrawFrontier(sample.Input()).svg);
}

TEST(FrontierPlotTest, ManyBreakpointsAreThinnedToWhatAnEyeCanSee) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  std::vector<FrontierPoint> points;
  const FrontierPoint& from = sample.frontier.points.front();
  for (int k = 0; k <= 20000; ++k) {
    points.push_back(
        {from.iteration_time_seconds * (1 + k * 1.5e-5), from.energy_joules * (1 - k * 1e-5), 100});
  }
  sample.frontier.points = points;
  const FrontierPlot plot = DrawFrontier(sample.Input());
  EXPECT_LT(plot.hover.at("curve").size(), 5000u);
  EXPECT_GT(plot.hover.at("curve").size(), 500u);
}

}  // namespace
}  // namespace perseus::report
