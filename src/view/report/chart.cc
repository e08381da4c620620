// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "common/html_text.h"
#include "report/page.h"
#include "report/scale.h"
#include "report/text.h"

namespace perseus::report {
namespace {

constexpr double kWidth = 1120;
constexpr double kLeft = 84;
constexpr double kRight = 1100;
constexpr double kTop = 14;
constexpr double kBelow = 52;  // For the names of the x axis.

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Never empty, so that scales can be inverted.
  Range Padded(double share) const {
    if (!(low <= high)) return {0, 1};
    const double least = 1e-3 * std::max(std::abs(low), std::abs(high));
    const double pad = std::max((high - low) * share, least > 0 ? least : 1);
    // Zero is a floor where nothing is below it.
    return {low >= 0 ? std::max(0.0, low - pad) : low - pad, high + pad};
  }
};

class Drawing {
 public:
  Drawing(std::string_view id, std::string_view title, double height)
      : bottom_(height - kBelow), height_(height) {
    Add("<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-title\">\n"
        "<title id=\"{}-title\">{}</title>\n",
        kWidth, height, id, id, EscapeHtml(title));
  }

  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  void YAxis(const Scale& y, std::string_view label) {
    const std::vector<double> ticks = RoundTicks(y.low, y.high, 6);
    for (const double tick : ticks) {
      Add("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n", kLeft,
          y(tick), kRight, y(tick));
      Add("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}</text>\n",
          kLeft - 10, y(tick) + 4, tick, TickDecimals(ticks));
    }
    Add("<text class=\"axis\" transform=\"translate(18 {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        (kTop + bottom_) / 2, EscapeHtml(label));
  }

  void XAxis(const Scale& x, std::string_view label) {
    const std::vector<double> ticks = RoundTicks(x.low, x.high, 10);
    for (const double tick : ticks) {
      Add("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x(tick),
          kTop, bottom_);
      Add("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.{}f}</text>\n",
          x(tick), bottom_ + 19, tick, TickDecimals(ticks));
    }
    AxisName(label);
  }

  // `x` is a scale of logarithms to the base 10.
  void LogXAxis(const Scale& x, std::string_view label) {
    for (int power = -6; power <= 12; ++power) {
      for (const int first : {1, 2, 5}) {
        const double tick = first * std::pow(10.0, power);
        const double at = std::log10(tick);
        if (at < x.low - 1e-9 || at > x.high + 1e-9) continue;
        Add("<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n", x(at),
            kTop, bottom_);
        Add("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
            x(at), bottom_ + 19, tick);
      }
    }
    AxisName(label);
  }

  double bottom() const { return bottom_; }
  std::string Finish() {
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  void AxisName(std::string_view label) {
    Add("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        (kLeft + kRight) / 2, height_ - 8, EscapeHtml(label));
  }

  double bottom_;
  double height_;
  std::string svg_;
};

std::string Legend(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string html = "<p class=\"keys\">";
  for (const auto& [css, name] : keys) html += Key(css, EscapeHtml(name));
  return html + "</p>\n";
}

std::string Figure(const std::string& legend, const std::string& svg) {
  return legend + Scrolled(svg);
}

// Bands as one path.
std::string BandsPath(const std::vector<ChartBand>& bands, const Scale& x, const Scale& y) {
  std::string path;
  for (const ChartBand& band : bands) {
    fmt::format_to(std::back_inserter(path), "M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}Z", x(band.from),
                   y(band.high), x(band.to), y(band.low), x(band.from));
  }
  return path;
}

void DrawSeries(const ChartSeries& series, const Scale& x, const Scale& y, Drawing* drawing) {
  if (series.line && series.points.size() > 1) {
    std::string path;
    for (const ChartPoint& point : series.points) {
      fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                     x(point.x), y(point.y));
    }
    drawing->Add("<path class=\"line {}\" d=\"{}\"/>\n", series.css, path);
  }
  if (!series.dots) return;
  for (const ChartPoint& point : series.points) {
    drawing->Add(
        "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {}, {}</title>"
        "</circle>\n",
        series.css, x(point.x), y(point.y), EscapeHtml(series.name), RoundSignificant(point.x, 8),
        RoundSignificant(point.y, 8));
  }
}

// The chart with the logarithms of its frequencies, or whatever is on its x axis.
LineChart WithLogX(LineChart chart) {
  for (ChartSeries& series : chart.series) {
    for (ChartPoint& point : series.points) point.x = std::log10(point.x);
  }
  for (ChartBand& band : chart.bands) {
    band.from = std::log10(band.from);
    band.to = std::log10(band.to);
  }
  for (ChartSpan& span : chart.spans) {
    span.from = std::log10(span.from);
    span.to = std::log10(span.to);
  }
  return chart;
}

// Of a chart that is WithLogX() already, where it should be.
std::string DrawLines(const LineChart& chart) {
  Range across, up;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      across.Take(point.x);
      up.Take(point.y);
    }
  }
  const auto take = [&](const std::vector<ChartBand>& bands) {
    for (const ChartBand& band : bands) {
      across.Take(band.from);
      across.Take(band.to);
      up.Take(band.low);
      up.Take(band.high);
    }
  };
  take(chart.bands);
  for (const ChartArea& area : chart.areas) take(area.bands);
  Drawing drawing(chart.id, chart.title, chart.height);
  const Range y_range = up.Padded(0.06);
  const Scale y{y_range.low, y_range.high, drawing.bottom(), kTop};
  const Range x_range = chart.fill_x ? across : across.Padded(0.03);
  const bool flat = !(x_range.low < x_range.high);
  const Scale x{flat ? 0 : x_range.low, flat ? 1 : x_range.high, kLeft, kRight};

  std::vector<std::pair<std::string, std::string>> keys;
  for (const ChartSpan& span : chart.spans) {
    const double from = std::clamp(x(span.from), kLeft, kRight);
    const double to = std::clamp(x(span.to), kLeft, kRight);
    drawing.Add("<rect class=\"span\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                from, kTop, std::max(to - from, 0.5), drawing.bottom() - kTop);
  }
  drawing.YAxis(y, chart.y_label);
  if (chart.log_x) {
    drawing.LogXAxis(x, chart.x_label);
  } else {
    drawing.XAxis(x, chart.x_label);
  }
  for (const ChartArea& area : chart.areas) {
    drawing.Add("<path class=\"{}\" d=\"{}\"/>\n", area.css, BandsPath(area.bands, x, y));
    keys.emplace_back(area.css, area.name);
  }
  if (!chart.bands.empty()) {
    drawing.Add("<path class=\"band\" d=\"{}\"/>\n", BandsPath(chart.bands, x, y));
  }
  for (const ChartSeries& series : chart.series) {
    DrawSeries(series, x, y, &drawing);
    if (!series.points.empty() && series.in_legend) keys.emplace_back(series.css, series.name);
  }
  if (!chart.bands.empty()) keys.emplace_back("band", chart.band_name);
  if (!chart.spans.empty()) keys.emplace_back("span", chart.span_name);
  return Figure(Legend(keys), drawing.Finish());
}

}  // namespace

std::string DrawLineChart(const LineChart& chart) {
  return DrawLines(chart.log_x ? WithLogX(chart) : chart);
}

std::string DrawBarChart(const BarChart& chart) {
  Range up;
  up.Take(0);
  for (const BarSeries& series : chart.series) {
    for (const double value : series.values) up.Take(value);
  }
  Drawing drawing(chart.id, chart.title, 340);
  const Range range = up.Padded(0.06);
  const Scale y{up.low < 0 ? range.low : 0, range.high, drawing.bottom(), kTop};
  drawing.YAxis(y, chart.y_label);
  const double group_width =
      (kRight - kLeft) / std::max<double>(1, static_cast<double>(chart.groups.size()));
  const double bar_width =
      0.84 * group_width / std::max<double>(1, static_cast<double>(chart.series.size()));
  std::vector<std::pair<std::string, std::string>> keys;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const BarSeries& series = chart.series[s];
    keys.emplace_back(series.css, series.name);
    for (std::size_t g = 0; g < series.values.size() && g < chart.groups.size(); ++g) {
      const double value = series.values[g];
      if (!std::isfinite(value)) continue;
      const double left = kLeft + group_width * (static_cast<double>(g) + 0.08) +
                          bar_width * static_cast<double>(s);
      drawing.Add(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
          "<title>{}, {} {}: {:.2f} %</title></rect>\n",
          series.css, left, y(std::max(value, 0.0)), std::max(1.0, bar_width - 1),
          std::abs(y(value) - y(0)), EscapeHtml(series.name), EscapeHtml(chart.groups[g]),
          EscapeHtml(chart.subgroups[g]), value);
    }
  }
  for (std::size_t g = 0; g < chart.groups.size(); ++g) {
    const double middle = kLeft + group_width * (static_cast<double>(g) + 0.5);
    drawing.Add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", middle,
                drawing.bottom() + 19, EscapeHtml(chart.groups[g]));
    drawing.Add("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                middle, drawing.bottom() + 36, EscapeHtml(chart.subgroups[g]));
  }
  return Figure(Legend(keys), drawing.Finish());
}

std::vector<Column> IntoColumns(std::int64_t count, int columns,
                                const std::function<double(std::int64_t)>& value) {
  std::vector<Column> result;
  const std::int64_t parts = std::min<std::int64_t>(count, columns);
  for (std::int64_t k = 0; k < parts; ++k) {
    Column column;
    // Quotient and remainder apart: count * k could overflow.
    column.first = count / parts * k + count % parts * k / parts;
    column.last = count / parts * (k + 1) + count % parts * (k + 1) / parts;
    column.low = column.high = value(column.first);
    double sum = 0;
    for (std::int64_t i = column.first; i < column.last; ++i) {
      const double each = value(i);
      column.low = std::min(column.low, each);
      column.high = std::max(column.high, each);
      sum += each;
    }
    column.mean = sum / static_cast<double>(column.last - column.first);
    result.push_back(column);
  }
  return result;
}

}  // namespace perseus::report
