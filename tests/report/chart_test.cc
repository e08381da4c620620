// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "markup.h"

namespace perseus::report {
namespace {

TEST(IntoColumnsTest, KeepsEveryPeakAndTheMean) {
  const std::int64_t count = 1'000'003;
  const auto value = [](std::int64_t i) {
    return i == 777'777 ? 9.0 : i == 3 ? -5.0 : static_cast<double>(i % 2);
  };
  const std::vector<Column> columns = IntoColumns(count, 900, value);
  ASSERT_EQ(columns.size(), 900u);
  double low = 0, high = 0, sum = 0;
  std::int64_t next = 0;
  for (const Column& column : columns) {
    EXPECT_EQ(column.first, next);
    EXPECT_GT(column.last, column.first);
    next = column.last;
    low = std::min(low, column.low);
    high = std::max(high, column.high);
    sum += column.mean * static_cast<double>(column.last - column.first);
  }
  EXPECT_EQ(next, count);
  EXPECT_EQ(low, -5);
  EXPECT_EQ(high, 9);
  // 500,001 odd numbers, two of them (3 and 777,777) with another value.
  EXPECT_NEAR(sum, 500'001 - 2 + 9 - 5, 1e-6);
}

TEST(IntoColumnsTest, FewValuesAreColumnsOfTheirOwn) {
  const std::vector<Column> columns =
      IntoColumns(3, 900, [](std::int64_t i) { return static_cast<double>(i); });
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[2].mean, 2);
  EXPECT_TRUE(IntoColumns(0, 900, [](std::int64_t) { return 0.0; }).empty());
}

void ExpectGood(const std::string& html) {
  EXPECT_EQ(UnbalancedTag(html), "");
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
}

TEST(LineChartTest, ALegendMayLeaveSeriesOut) {
  LineChart chart;
  chart.id = "x";
  chart.series = {{"curve", "c1", {{0, 3}, {2, 3}}},
                  {"its end", "c1", {{2, 3}}, false, true, false}};
  const std::string html = DrawLineChart(chart);
  ExpectGood(html);
  const std::string legend = html.substr(0, html.find("</p>"));
  EXPECT_NE(legend.find("curve"), std::string::npos);
  EXPECT_EQ(legend.find("its end"), std::string::npos);
  EXPECT_NE(html.find("its end"), std::string::npos);
}

TEST(LineChartTest, AreasLieBehindTheLines) {
  LineChart chart;
  chart.id = "x";
  chart.areas = {{"lower", "c2", {{0, 1, 0, 5}, {1, 2, 0, 4}}}, {"upper", "c3", {{0, 2, 5, 90}}}};
  chart.series = {{"line", "c1", {{0, 3}, {2, 3}}}};
  const std::string html = DrawLineChart(chart);
  ExpectGood(html);
  const std::size_t lower = html.find("<path class=\"c2\"");
  const std::size_t upper = html.find("<path class=\"c3\"");
  const std::size_t line = html.find("<path class=\"line c1\"");
  EXPECT_LT(lower, upper);
  EXPECT_LT(upper, line);
  EXPECT_NE(line, std::string::npos);
  EXPECT_NE(html.find(">80<"), std::string::npos);  // The axis reaches the areas.
  for (const char* name : {"lower", "upper", "line"}) {
    EXPECT_NE(html.find(name), std::string::npos);
  }
}

TEST(LineChartTest, DrawsAnythingThatIsANumber) {
  LineChart chart;
  chart.id = "x";
  ExpectGood(DrawLineChart(chart));
  chart.series = {{"one point", "c0", {{2, 3}}, true, true}};
  ExpectGood(DrawLineChart(chart));
  chart.fill_x = true;
  ExpectGood(DrawLineChart(chart));
  chart.series = {{"zeros", "c0", {{0, 0}, {0, 0}}, true, true}};
  ExpectGood(DrawLineChart(chart));
}

TEST(LineChartTest, EscapesText) {
  LineChart chart;
  chart.id = "x";
  chart.title = chart.x_label = chart.y_label = "<b>";
  chart.series = {{"<b>", "c0", {{2, 3}}, true, true}};
  EXPECT_EQ(DrawLineChart(chart).find("<b>"), std::string::npos);
}

TEST(BarChartTest, LeavesOutWhatIsMissingAndDrawsLossesDown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string html =
      DrawBarChart({"x", "t", "%", {"a", "b"}, {"1", "2"}, {{"s", "c0", {nan, -2}}}});
  ExpectGood(html);
  EXPECT_EQ(Count(html, "<rect class=\"c0\" x="), 1);
  EXPECT_NE(html.find("s, b 2: -2.00 %"), std::string::npos);
}

}  // namespace
}  // namespace perseus::report
