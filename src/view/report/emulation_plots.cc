// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/emulation_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "report/chart.h"
#include "report/document.h"
#include "report/page.h"
#include "report/text.h"

namespace perseus::report {
namespace {

// Iterations with stragglers, [first, last) as few runs as a plot can show.
std::vector<std::pair<std::int64_t, std::int64_t>> StragglingRuns(const Emulation& emulation) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  const auto count = static_cast<std::int64_t>(emulation.iterations.size());
  const std::int64_t gap = count / kMostColumns;  // Less than a pixel.
  for (std::int64_t i = 0; i < count; ++i) {
    if (emulation.iterations[i].straggling_pipelines == 0) continue;
    if (!runs.empty() && i - runs.back().second <= gap) {
      runs.back().second = i + 1;
    } else {
      runs.emplace_back(i, i + 1);
    }
  }
  return runs;
}

// A column is a level over its width.
void AddLevel(double from, double to, double level, ChartSeries* series) {
  series->points.push_back({from, level});
  series->points.push_back({to, level});
}

}  // namespace

std::string DrawPower(const Emulation& emulation) {
  const PowerTrace& power = emulation.power;
  if (power.watts.empty()) return "";
  const DisplayUnit unit = PowerUnit(emulation.peak_watts);
  LineChart chart;
  chart.id = "power";
  chart.title = "Power of the job over time";
  chart.x_label = "time (s)";
  chart.y_label = fmt::format("power ({})", unit.name);
  chart.fill_x = true;
  ChartSeries mean{"mean power", "c0", {}};
  const auto count = static_cast<std::int64_t>(power.watts.size());
  for (const Column& column :
       IntoColumns(count, kMostColumns, [&](std::int64_t i) { return power.watts[i]; })) {
    const double from = static_cast<double>(column.first) * power.interval_seconds;
    const double to = static_cast<double>(column.last) * power.interval_seconds;
    AddLevel(from, to, column.mean / unit.factor, &mean);
    if (count > kMostColumns) {
      chart.bands.push_back({from, to, column.low / unit.factor, column.high / unit.factor});
    }
  }
  chart.band_name = "least to greatest within a pixel";
  chart.series.push_back(std::move(mean));
  for (const auto& [first, last] : StragglingRuns(emulation)) {
    const IterationRecord& end = emulation.iterations[last - 1];
    chart.spans.push_back(
        {emulation.iterations[first].start_seconds, end.start_seconds + end.time_seconds});
  }
  chart.span_name = "a pipeline straggles";
  return DrawLineChart(chart);
}

std::string DrawIterationTimes(const Emulation& emulation) {
  if (emulation.iterations.size() < 2) return "";
  const auto count = static_cast<std::int64_t>(emulation.iterations.size());
  const DisplayUnit unit = TimeUnit(emulation.time_seconds / static_cast<double>(count));
  const auto time = [&](std::int64_t i) {
    return emulation.iterations[i].time_seconds / unit.factor;
  };
  const auto target = [&](std::int64_t i) {
    return emulation.iterations[i].target_seconds / unit.factor;
  };
  LineChart chart;
  chart.id = "iterations";
  chart.title = "Time of every iteration";
  chart.x_label = "iteration";
  chart.y_label = fmt::format("iteration time ({})", unit.name);
  chart.height = 280;
  chart.fill_x = true;
  ChartSeries took{"iteration time (mean)", "c0", {}};
  ChartSeries planned{"planned for, by healthy pipelines", "c1", {}};
  const std::vector<Column> targets = IntoColumns(count, kMostColumns, target);
  std::size_t k = 0;
  for (const Column& column : IntoColumns(count, kMostColumns, time)) {
    const auto from = static_cast<double>(column.first);
    const auto to = static_cast<double>(column.last);
    AddLevel(from, to, column.mean, &took);
    AddLevel(from, to, targets[k++].mean, &planned);
    if (count > kMostColumns) chart.bands.push_back({from, to, column.low, column.high});
  }
  chart.band_name = "least to greatest within a pixel";
  chart.series = {std::move(planned), std::move(took)};
  for (const auto& [first, last] : StragglingRuns(emulation)) {
    chart.spans.push_back({static_cast<double>(first), static_cast<double>(last)});
  }
  chart.span_name = "a pipeline straggles";
  return DrawLineChart(chart);
}

std::string DrawEnergySplit(const EnergySplit& energy) {
  const struct {
    std::string_view css, name, says;
    double joules;
  } parts[] = {{"useful", "Useful", "What the work needs, in the time that the job took.",
                energy.useful_joules},
               {"intrinsic", "Intrinsic bloat",
                "Computations off the critical path ran faster than their pipeline needed.",
                energy.intrinsic_bloat_joules},
               {"extrinsic", "Extrinsic bloat",
                "Whole pipelines ran faster than the slowest one let them finish.",
                energy.extrinsic_bloat_joules},
               {"blocking", "Blocking", "GPUs waited, for other ranks or other pipelines.",
                energy.blocking_joules}};
  const double total = energy.total_joules();
  const DisplayUnit unit = EnergyUnit(total);
  double width = 0;
  for (const auto& part : parts) width += std::max(0.0, part.joules);
  std::string html =
      "<svg class=\"split\" viewBox=\"0 0 100 34\" preserveAspectRatio=\"none\" "
      "aria-hidden=\"true\">";
  double at = 0;
  std::string legend = "<p class=\"keys\">";
  Table table{"", {"", fmt::format("Energy ({})", unit.name), "Share"}, 1, {}};
  for (const auto& part : parts) {
    const double share = width > 0 ? 100 * std::max(0.0, part.joules) / width : 0;
    fmt::format_to(std::back_inserter(html),
                   "<rect class=\"{}\" x=\"{:.3f}\" y=\"0\" width=\"{:.3f}\" height=\"34\"/>",
                   part.css, at, share);
    at += share;
    legend += Key(part.css, part.name);
    table.Add({{std::string(part.name), "", std::string(part.says)},
               {unit.Number(part.joules)},
               {total != 0 ? FixedText(100 * part.joules / total, 2) + "\u00a0%" : "\u2013"}});
  }
  table.Add({{"All"}, {unit.Number(total)}, {"100.00\u00a0%"}}, "total");
  return html + "</svg>\n" + legend + "</p>\n" + HtmlTable(table);
}

}  // namespace perseus::report
