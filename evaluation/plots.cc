// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/html_text.h"
#include "evaluation/tables.h"
#include "report/chart.h"

namespace perseus::sosp24 {
namespace {

using report::BarChart;
using report::ChartPoint;
using report::ChartSeries;
using report::DrawBarChart;
using report::DrawLineChart;
using report::LineChart;

auto CaseOf(const Sosp24Straggler& row) {
  return std::tie(row.model, row.device, row.microbatches);
}

std::string CaseName(const Sosp24Straggler& row) {
  return fmt::format("{}, {}, {} microbatches", row.model, row.device, row.microbatches);
}

// Points of the one job, in the order of time.
ChartSeries SeriesOf(std::string name, std::string css, const std::vector<Sosp24Point>& points,
                     bool line) {
  ChartSeries series{std::move(name), std::move(css), {}, line, true};
  for (const Sosp24Point& point : points) {
    series.points.push_back({point.iteration_time_seconds, point.energy_joules});
  }
  std::sort(series.points.begin(), series.points.end(),
            [](const ChartPoint& a, const ChartPoint& b) {
              return std::pair(a.x, a.y) < std::pair(b.x, b.y);
            });
  return series;
}

}  // namespace

std::string DrawFigure7(const Sosp24Evaluation& evaluation) {
  BarChart chart;
  chart.id = "figure7";
  chart.title = "Saving of the whole job when one pipeline is slower by 1.2";
  chart.y_label = "saving of the job (%)";
  chart.series = {{"published rule", "c5", {}},
                  {"least effective energy, same frontier", "c3", {}},
                  {"ours at T", "c0", {}},
                  {"bound at T", "c4", {}},
                  {"EnvPipe, as the protocol says", "c1", {}}};
  for (const Sosp24Straggler& row : evaluation.stragglers) {
    if (!IsFigure7(row)) continue;
    chart.groups.push_back(row.model);
    chart.subgroups.push_back(fmt::format("{}, {}", row.device, row.microbatches));
    chart.series[0].values.push_back(row.published_job_percent);
    chart.series[1].values.push_back(row.effective_job_percent);
    chart.series[2].values.push_back(row.ours_job_percent);
    chart.series[3].values.push_back(row.bound_job_percent);
    chart.series[4].values.push_back(HasEnvPipe(row) ? row.envpipe_job_percent
                                                     : std::numeric_limits<double>::quiet_NaN());
  }
  return chart.groups.empty() ? "" : DrawBarChart(chart);
}

std::string DrawFigure8(const Sosp24Evaluation& evaluation) {
  std::string html;
  const std::vector<Sosp24Straggler>& rows = evaluation.stragglers;
  std::vector<const Sosp24Straggler*> cases;  // The first row of each.
  for (const Sosp24Straggler& row : rows) {
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Sosp24Straggler* each) { return CaseOf(*each) == CaseOf(row); })) {
      cases.push_back(&row);
    }
  }
  int number = 0;
  for (const Sosp24Straggler* one : cases) {
    LineChart chart;
    chart.id = fmt::format("figure8-{}", ++number);
    chart.title = CaseName(*one);
    chart.x_label = "slowdown of the straggling pipeline";
    chart.y_label = "saving of the job (%)";
    chart.series = {{"bound at T", "c4", {}},
                    {"published rule", "c5", {}},
                    {"least effective energy, same frontier", "c3", {}},
                    {"ours at T", "c0", {}},
                    {"EnvPipe, as the protocol says", "c1", {}}};
    for (const Sosp24Straggler& row : rows) {
      if (CaseOf(row) != CaseOf(*one)) continue;
      chart.series[0].points.push_back({row.slowdown, row.bound_job_percent});
      chart.series[1].points.push_back({row.slowdown, row.published_job_percent});
      chart.series[2].points.push_back({row.slowdown, row.effective_job_percent});
      chart.series[3].points.push_back({row.slowdown, row.ours_job_percent});
      if (HasEnvPipe(row)) {
        chart.series[4].points.push_back({row.slowdown, row.envpipe_job_percent});
      }
    }
    html += fmt::format("<h3>{}</h3>\n{}", EscapeHtml(chart.title), DrawLineChart(chart));
  }
  return html;
}

std::string DrawFigure9(const Sosp24Job& job, int number) {
  LineChart chart;
  chart.id = fmt::format("figure9-{}", number);
  chart.title = fmt::format("{} on {}", job.model, job.gpu);
  chart.x_label = "iteration time (s)";
  chart.y_label = "energy per iteration (J)";
  chart.series = {SeriesOf("ZeusGlobal, measured", "c5", job.zeus_global, true),
                  SeriesOf("ZeusPerStage, measured", "c3", job.zeus_per_stage, true),
                  SeriesOf("Perseus, measured", "c2", job.perseus, true),
                  SeriesOf("ours, predicted", "c0", job.ours_frontier, true),
                  SeriesOf("baseline, measured", "c4", {job.baseline}, false)};
  if (job.envpipe) {
    chart.series.push_back(SeriesOf("EnvPipe, measured", "c1", {*job.envpipe}, false));
  }
  return DrawLineChart(chart);
}

}  // namespace perseus::sosp24
