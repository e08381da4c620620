// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/frontier_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/framework/table.h"
#include "cli/planning/checked_plan.h"
#include "cli/planning/plan_notes.h"
#include "common/file.h"
#include "fleet/site.h"
#include "perseus/plan_file.h"
#include "report/chart.h"
#include "report/document.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFrontierBytes = std::size_t{1} << 30;

constexpr std::string_view kWhatItShows =
    "Frontiers are lower bounds: no plan of one pipeline uses less energy in that time. All "
    "figures "
    "are of one iteration of one pipeline, on paper.";

// None: no plan is so fast.
std::optional<double> EnergyAt(const NamedFrontier& of, double seconds) {
  constexpr double kRounding = 1e-9;
  if (seconds < of.frontier.fastest_seconds * (1 - kRounding)) return std::nullopt;
  return of.frontier.EnergyAt(seconds);
}

double SavingOf(const NamedFrontier& of) {
  return report::PercentSaved(of.frontier.EnergyAt(of.full_speed.seconds), of.full_speed.joules);
}

TimeAndEnergy LeastEnergy(const NamedFrontier& of) {
  const double seconds = of.frontier.economic_seconds;
  return {seconds, of.frontier.EnergyAt(seconds)};
}

// At which all are compared: where each is at maximum clocks.
std::vector<double> ComparedTimes(const std::vector<NamedFrontier>& frontiers) {
  std::vector<double> times;
  times.reserve(frontiers.size());
  for (const NamedFrontier& each : frontiers) times.push_back(each.full_speed.seconds);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end(), report::SameTime), times.end());
  return times;
}

// Both tables, for a terminal and for the page: heads and rows.
struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

TextTable SummaryTable(const std::vector<NamedFrontier>& frontiers) {
  TextTable table;
  table.head = {"plan", "T_min", "maximum clocks", "saving there", "least energy", "at"};
  for (const NamedFrontier& each : frontiers) {
    const TimeAndEnergy least = LeastEnergy(each);
    table.rows.push_back({each.name, FormatSeconds(each.frontier.fastest_seconds),
                          fmt::format("{}, {}", FormatSeconds(each.full_speed.seconds),
                                      FormatJoules(each.full_speed.joules)),
                          FormatPercent(SavingOf(each), 2), FormatJoules(least.joules),
                          FormatSeconds(least.seconds)});
  }
  return table;
}

TextTable TimesTable(const std::vector<NamedFrontier>& frontiers) {
  TextTable table;
  table.head = {"least energy in"};
  for (const NamedFrontier& each : frontiers) table.head.push_back(each.name);
  for (const double seconds : ComparedTimes(frontiers)) {
    std::vector<std::string> row = {FormatSeconds(seconds)};
    for (const NamedFrontier& each : frontiers) {
      const auto joules = EnergyAt(each, seconds);
      row.push_back(joules ? FormatJoules(*joules) : "not so fast");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string ForTerminal(TextTable table, const Style& style) {
  Table text(std::move(table.head), {Align::kLeft});
  for (std::vector<std::string>& row : table.rows) text.AddRow(std::move(row));
  return text.Format(style.rule());
}

report::Table ForPage(TextTable table, std::string caption) {
  report::Table page;
  page.caption = std::move(caption);
  page.columns = std::move(table.head);
  for (std::vector<std::string>& row : table.rows) {
    std::vector<report::Cell> cells;
    cells.reserve(row.size());
    for (std::string& text : row) cells.push_back({.text = std::move(text)});
    page.Add(std::move(cells));
  }
  return page;
}

}  // namespace

Result<NamedFrontier> ReadFrontier(const std::string& path) {
  const Result<CheckedPlan> checked = ReadCheckedPlan(path);
  if (!checked) return tl::unexpected(checked.error());
  const PlanDocument& plan = checked->plan;
  const std::string plan_path = PlanPathOf(path);
  const std::string frontier_path =
      std::filesystem::path(plan_path).replace_filename(kFrontierFileName).string();
  const Result<std::string> csv = ReadWholeFile(frontier_path, kMostFrontierBytes);
  if (!csv) return tl::unexpected(csv.error());
  const Result<fleet::SharedModel> model =
      fleet::ParseModel(FormatPlanJson(plan), plan_path, *csv, frontier_path);
  if (!model) return tl::unexpected(model.error());
  NamedFrontier named;
  named.name = path;
  named.plan = {plan.iteration_time_seconds, plan.energy_joules};
  named.full_speed = {plan.baseline.iteration_time_seconds, plan.baseline.energy_joules};
  named.modelled = plan.profile_modelled;
  named.notes = plan.notes;
  Frontier& frontier = named.frontier;
  for (const IterationPoint& point : (*model)->frontier) {
    frontier.points.push_back({point.time_seconds, point.energy_joules});
  }
  frontier.total_blocking_power_watts = (*model)->waiting_watts;
  frontier.fastest_seconds = frontier.points.front().iteration_time_seconds;
  frontier.tstar_seconds = frontier.points.back().iteration_time_seconds;
  frontier.economic_seconds = std::min_element(frontier.points.begin(), frontier.points.end(),
                                               [](const FrontierPoint& a, const FrontierPoint& b) {
                                                 return a.energy_joules < b.energy_joules;
                                               })
                                  ->iteration_time_seconds;
  return named;
}

std::string FrontiersText(const std::vector<NamedFrontier>& frontiers, const Style& style) {
  return ForTerminal(SummaryTable(frontiers), style) + "\n" +
         ForTerminal(TimesTable(frontiers), style) + "\n" + Wrap(kWhatItShows, style.columns, 0) +
         "\n";
}

Json FrontiersJson(const std::vector<NamedFrontier>& frontiers) {
  const auto point = [](const TimeAndEnergy& of) {
    return Json{{"iteration_time_s", of.seconds}, {"energy_j", of.joules}};
  };
  Json json = {{"schema_version", 1}, {"frontiers", Json::array()}, {"at", Json::array()}};
  for (const NamedFrontier& each : frontiers) {
    json["frontiers"].push_back({{"file", each.name},
                                 {"fastest_s", each.frontier.fastest_seconds},
                                 {"max_clocks", point(each.full_speed)},
                                 {"saving_percent", SavingOf(each)},
                                 {"least_energy", point(LeastEnergy(each))},
                                 {"plan", point(each.plan)}});
  }
  for (const double seconds : ComparedTimes(frontiers)) {
    Json energies = Json::array();
    for (const NamedFrontier& each : frontiers) {
      const auto joules = EnergyAt(each, seconds);
      energies.push_back(joules ? Json(*joules) : Json());
    }
    json["at"].push_back({{"iteration_time_s", seconds}, {"energy_j", std::move(energies)}});
  }
  return json;
}

std::string FrontiersHtml(const std::vector<NamedFrontier>& frontiers) {
  report::Document document;
  document.title = "Frontiers compared";
  document.subtitle = report::Plural(static_cast<std::int64_t>(frontiers.size()), "plan");
  for (const NamedFrontier& each : frontiers) {
    document.notes.insert(document.notes.end(), each.notes.begin(), each.notes.end());
    if (document.warning.empty()) document.warning = each.modelled;
  }
  document.Heading("Energy over iteration time");
  document.Paragraph(std::string(kWhatItShows) +
                     " Dots are the plans, and, above the curves, maximum clocks.");
  const auto time = report::TimeUnit(frontiers.front().full_speed.seconds);
  const auto energy = report::EnergyUnit(frontiers.front().full_speed.joules);
  report::LineChart chart;
  chart.id = "frontiers";
  chart.title = "Energy over iteration time";
  chart.x_label = fmt::format("iteration time ({})", time.name);
  chart.y_label = fmt::format("energy of an iteration of one pipeline ({})", energy.name);
  chart.height = 460;
  for (std::size_t i = 0; i < frontiers.size(); ++i) {
    const std::string css = fmt::format("c{}", i);
    const auto at = [&](double seconds, double joules) {
      return report::ChartPoint{seconds / time.factor, joules / energy.factor};
    };
    report::ChartSeries curve = {.name = frontiers[i].name, .css = css, .points = {}};
    for (const FrontierPoint& point : frontiers[i].frontier.points) {
      curve.points.push_back(at(point.iteration_time_seconds, point.energy_joules));
    }
    chart.series.push_back(std::move(curve));
    const auto add_dot = [&](std::string_view what, const TimeAndEnergy& dot) {
      chart.series.push_back({.name = fmt::format("{}, {}", frontiers[i].name, what),
                              .css = css,
                              .points = {at(dot.seconds, dot.joules)},
                              .line = false,
                              .dots = true,
                              .in_legend = false});
    };
    add_dot("plan", frontiers[i].plan);
    add_dot("maximum clocks", frontiers[i].full_speed);
  }
  document.Figure(report::DrawLineChart(chart));
  document.Heading("What each comes to");
  document.Put(ForPage(SummaryTable(frontiers), "Saving: against maximum clocks, in their time"));
  document.Put(ForPage(TimesTable(frontiers), "In the same time"));
  return report::HtmlOf(document);
}

}  // namespace perseus::cli
