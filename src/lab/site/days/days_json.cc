// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "common/json_text.h"
#include "site/days/calendar.h"
#include "site/days/days_report.h"

namespace perseus::site {
namespace {

constexpr NamedFigure kFigures[] = {
    {"work_lost_percent", &DaysFigures::lost_percent, 1},
    {"energy_kwh", &DaysFigures::energy_joules, kJoulesOfKwh},
    {"cost", &DaysFigures::cost, 1},
    {"co2_kg", &DaysFigures::co2_grams, 1000},
    {"over_limit_s", &DaysFigures::over_seconds, 1},
    {"over_limit_most_w", &DaysFigures::over_most_watts, 1},
    {"over_limit_kwh", &DaysFigures::over_joules, kJoulesOfKwh},
    {"steepest_rise_w_per_s", &DaysFigures::rise_watts_per_second, 1},
    {"steepest_fall_w_per_s", &DaysFigures::fall_watts_per_second, 1},
    {"deadlines_missed", &DaysFigures::deadlines_missed, 1},
    {"too_slow_job_hours", &DaysFigures::too_slow_seconds, 3600},
    {"fairness", &DaysFigures::fairness, 1},
    {"plan_changes", &DaysFigures::plan_changes, 1},
};

nlohmann::ordered_json RuleJson(const DaysReport& report, const RuleAnswer& rule) {
  nlohmann::ordered_json json;
  json["rule"] = rule.rule;
  json["title"] = rule.title;
  json["says"] = rule.says;
  for (const NamedFigure& each : kFigures) {
    const Spread spread = SpreadOf(rule.figures, each.figure);
    nlohmann::ordered_json& figure = json[std::string(each.name)];
    figure["mean"] = spread.mean / each.factor;
    figure["deviation"] = spread.deviation / each.factor;
    figure["least"] = spread.least / each.factor;
    figure["most"] = spread.most / each.factor;
  }
  for (std::size_t j = 0; j < rule.first.jobs.size(); ++j) {
    const JobDays& job = rule.first.jobs[j];
    double joules = 0;
    for (const JobSpan& span : job.spans) {
      joules += span.watts * (span.to_seconds - span.from_seconds);
    }
    nlohmann::ordered_json row;
    row["name"] = report.site->jobs[j].fleet.name;
    row["from_s"] = job.arrives_seconds;
    row["to_s"] = job.leaves_seconds;
    row["iterations"] = job.iterations;
    row["energy_kwh"] = joules / kJoulesOfKwh;
    if (report.site->jobs[j].deadline) row["deadline_missed"] = job.missed;
    json["jobs"].push_back(std::move(row));
  }
  return json;
}

}  // namespace

std::span<const NamedFigure> DaysFigureList() { return kFigures; }

Spread SpreadOf(const std::vector<DaysFigures>& figures, double DaysFigures::*figure) {
  Spread spread;
  if (figures.empty()) return spread;
  spread.least = figures.front().*figure;
  spread.most = spread.least;
  double sum = 0;
  for (const DaysFigures& each : figures) {
    sum += each.*figure;
    spread.least = std::min(spread.least, each.*figure);
    spread.most = std::max(spread.most, each.*figure);
  }
  const auto count = static_cast<double>(figures.size());
  spread.mean = sum / count;
  double squares = 0;
  for (const DaysFigures& each : figures) {
    squares += (each.*figure - spread.mean) * (each.*figure - spread.mean);
  }
  if (figures.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

bool HasPrice(const DaysSite& site) { return !site.price_per_joule.empty(); }
bool HasCarbon(const DaysSite& site) { return !site.co2_grams_per_joule.empty(); }

const RuleAnswer* FindRule(const DaysAnswer& answer, std::string_view rule) {
  const auto found = std::find_if(answer.rules.begin(), answer.rules.end(),
                                  [rule](const RuleAnswer& each) { return each.rule == rule; });
  return found == answer.rules.end() ? nullptr : &*found;
}

std::vector<GroupDays> GroupsOf(const DaysSite& site, const RuleDays& days, double seconds) {
  const LimitCalendar limits(site);
  // Times with less power than usual, anywhere.
  std::vector<std::pair<double, double>> events;
  for (double at = 0; at < seconds;) {
    const double next = std::min(seconds, limits.NextChange(at, 0).value_or(seconds));
    bool is_less = false;
    for (std::size_t node = 0; node < site.nodes.size(); ++node) {
      is_less = is_less || limits.LimitAt(node, at) < site.nodes[node].limit_watts;
    }
    if (is_less) events.emplace_back(at, next);
    at = next;
  }
  std::vector<GroupDays> groups;
  std::map<std::string, std::size_t> index;
  std::vector<double> full_work;
  std::vector<double> work;
  std::vector<double> full_work_in_events;
  std::vector<double> work_in_events;
  double in_events = 0;
  for (const auto& [from, to] : events) in_events += to - from;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const auto [known, is_new] = index.emplace(site.jobs[j].group, groups.size());
    if (is_new) {
      groups.push_back({.name = site.jobs[j].group});
      for (auto* sums : {&full_work, &work, &full_work_in_events, &work_in_events}) {
        sums->push_back(0);
      }
    }
    const std::size_t g = known->second;
    GroupDays& group = groups[g];
    ++group.jobs;
    group.gpus += site.jobs[j].gpus;
    for (const JobSpan& span : days.jobs[j].spans) {
      const auto part = [&](double from, double to) {
        return std::max(0.0, std::min(to, span.to_seconds) - std::max(from, span.from_seconds));
      };
      const double length = part(0, seconds);
      group.full_watts += site.meter_factor * span.full_watts * length / seconds;
      group.watts += site.meter_factor * span.watts * length / seconds;
      full_work[g] += span.full_speed * length;
      work[g] += span.speed * length;
      for (const auto& [from, to] : events) {
        const double within = part(from, to);
        group.full_watts_in_events += site.meter_factor * span.full_watts * within / in_events;
        group.watts_in_events += site.meter_factor * span.watts * within / in_events;
        full_work_in_events[g] += span.full_speed * within;
        work_in_events[g] += span.speed * within;
      }
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto lost = [](double did, double full) { return full > 0 ? 100 * (1 - did / full) : 0; };
    groups[g].lost_percent = lost(work[g], full_work[g]);
    groups[g].lost_percent_in_events = lost(work_in_events[g], full_work_in_events[g]);
  }
  return groups;
}

std::string FormatDaysJson(const DaysReport& report) {
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["site"] = report.name;
  json["seconds"] = report.seconds;
  json["seeds"] = report.seeds;
  json["jobs"] = report.site->jobs.size();
  std::int64_t gpus = 0;
  for (const DaysJob& job : report.site->jobs) gpus += job.gpus;
  json["gpus"] = gpus;
  json["deadlines"] = report.answer->deadlines;
  if (!report.currency.empty()) json["currency"] = report.currency;
  for (const SeriesStep& step : report.answer->limits) {
    json["limits"].push_back({{"from_s", step.seconds}, {"limit_w", step.value}});
  }
  for (const RuleAnswer& rule : report.answer->rules) {
    json["rules"].push_back(RuleJson(report, rule));
  }
  return FormatByLine(json);
}

std::string FormatDaysCsv(const DaysReport& report) {
  const int minutes = std::max(1, static_cast<int>(std::ceil(report.seconds / kSecondsOfMinute)));
  std::string csv = "time_s,limit_w";
  std::vector<std::vector<double>> columns;
  for (const RuleAnswer& rule : report.answer->rules) {
    csv += "," + rule.rule + "_w";
    std::vector<double>& sum = columns.emplace_back(static_cast<std::size_t>(minutes), 0.0);
    for (const auto& job : PowerSeries(rule.first, minutes * kSecondsOfMinute, minutes)) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += report.site->meter_factor * job[i];
    }
  }
  csv += "\n";
  const LimitCalendar limits(*report.site);
  for (int i = 0; i < minutes; ++i) {
    const double at = i * kSecondsOfMinute;
    fmt::format_to(std::back_inserter(csv), "{},{}", at, limits.LimitAt(0, at));
    for (const std::vector<double>& column : columns) {
      fmt::format_to(std::back_inserter(csv), ",{:.3f}", column[static_cast<std::size_t>(i)]);
    }
    csv += "\n";
  }
  return csv;
}

}  // namespace perseus::site
