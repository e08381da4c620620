// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_CHART_H_
#define PERSEUS_SRC_REPORT_CHART_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace perseus::report {

// Simple charts as SVG, with a legend in HTML above them. Classes c0, c1, ...
// are the colours of the series. All text is escaped here.

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartSeries {
  std::string name;
  std::string css;
  std::vector<ChartPoint> points;
  bool line = true;
  bool dots = false;  // With their figures under the pointer.
  bool in_legend = true;
};

// An area between two values, as over the values that share a pixel.
struct ChartBand {
  double from = 0, to = 0;  // On the x axis.
  double low = 0, high = 0;
};

// A filled shape of bands side by side: a layer of a stack.
struct ChartArea {
  std::string name;
  std::string css;
  std::vector<ChartBand> bands;
};

struct ChartSpan {
  double from = 0, to = 0;
};

struct LineChart {
  std::string id;  // Unique on the page, letters and digits.
  std::string title;
  std::string x_label;
  std::string y_label;
  double height = 320;
  bool fill_x = false;  // Data reach from edge to edge, as over time.
  bool log_x = false;   // All x > 0.
  std::vector<ChartSeries> series;
  std::vector<ChartArea> areas;  // Behind all else, in their order. Not with log_x.
  std::vector<ChartBand> bands;
  std::string band_name;
  std::vector<ChartSpan> spans;  // Shaded over the whole height.
  std::string span_name;
};
std::string DrawLineChart(const LineChart& chart);

struct BarSeries {
  std::string name;
  std::string css;
  std::vector<double> values;  // [group]; NaN: none.
};

struct BarChart {
  std::string id;
  std::string title;
  std::string y_label;
  std::vector<std::string> groups;     // Names,
  std::vector<std::string> subgroups;  // and a line below each.
  std::vector<BarSeries> series;
};
std::string DrawBarChart(const BarChart& chart);

// The values 0 .. count - 1 in at most `columns` columns of nearly equal
// numbers, so that a plot of a million values stays small and no peak is lost.
struct Column {
  std::int64_t first = 0, last = 0;  // Values [first, last).
  double low = 0, mean = 0, high = 0;
};
std::vector<Column> IntoColumns(std::int64_t count, int columns,
                                const std::function<double(std::int64_t)>& value);
inline constexpr int kMostColumns = 900;

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_CHART_H_
