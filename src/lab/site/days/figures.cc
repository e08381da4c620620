// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/figures.h"

#include <algorithm>
#include <cmath>

#include "site/days/calendar.h"

namespace perseus::site {
namespace {

// The power of one job changes.
struct LoadChange {
  double seconds = 0;
  std::size_t job = 0;
  double watts = 0;  // From now on.
};

std::vector<LoadChange> LoadChanges(const RuleDays& days) {
  std::vector<LoadChange> changes;
  for (std::size_t j = 0; j < days.jobs.size(); ++j) {
    const std::vector<JobSpan>& spans = days.jobs[j].spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      changes.push_back({spans[i].from_seconds, j, spans[i].watts});
      const bool is_last = i + 1 == spans.size() || spans[i + 1].from_seconds > spans[i].to_seconds;
      if (is_last) changes.push_back({spans[i].to_seconds, j, 0});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LoadChange& a, const LoadChange& b) { return a.seconds < b.seconds; });
  return changes;
}

// When prices and limits change, and whole minutes.
std::vector<double> OtherChanges(const DaysSite& site, double seconds) {
  std::vector<double> times;
  for (const StepSeries* series : {&site.price_per_joule, &site.co2_grams_per_joule}) {
    for (const SeriesStep& step : *series) times.push_back(step.seconds);
  }
  for (const PowerEvent& event : site.events) {
    times.push_back(event.start_seconds);
    times.push_back(event.start_seconds + event.duration_seconds);
  }
  times.push_back(seconds);
  times.erase(std::remove_if(times.begin(), times.end(),
                             [seconds](double at) { return at < 0 || at > seconds; }),
              times.end());
  std::sort(times.begin(), times.end());
  return times;
}

// Adds up what constant power over some time comes to.
class PowerAccount {
 public:
  PowerAccount(const DaysSite& site, DaysFigures* figures)
      : site_(site), limits_(site), figures_(figures) {}

  void Add(double from, double to, const std::vector<double>& loads) {
    const double seconds = to - from;
    if (!(seconds > 0)) return;
    const double joules = loads.front() * seconds;
    const double middle = (from + to) / 2;
    figures_->energy_joules += joules;
    figures_->cost += joules * ValueAt(site_.price_per_joule, middle);
    figures_->co2_grams += joules * ValueAt(site_.co2_grams_per_joule, middle);
    // A millionth of a limit is rounding.
    constexpr double kRounding = 1e-6;
    double most = 0;
    for (std::size_t node = 0; node < loads.size(); ++node) {
      const double limit = limits_.LimitAt(node, middle);
      if (loads[node] <= limit * (1 + kRounding)) continue;
      most = std::max(most, loads[node] - limit);
      if (node == 0) figures_->over_joules += (loads[node] - limit) * seconds;
    }
    if (most > 0) figures_->over_seconds += seconds;
    figures_->over_most_watts = std::max(figures_->over_most_watts, most);
    AddToMinutes(from, to, loads.front());
  }

  void Finish(double seconds) {
    // A part of a minute at the end is none.
    const auto whole = static_cast<std::size_t>(seconds / kSecondsOfMinute);
    if (minutes_.size() > whole) minutes_.resize(whole);
    for (std::size_t i = 1; i < minutes_.size(); ++i) {
      const double change = (minutes_[i] - minutes_[i - 1]) / (kSecondsOfMinute * kSecondsOfMinute);
      figures_->rise_watts_per_second = std::max(figures_->rise_watts_per_second, change);
      figures_->fall_watts_per_second = std::max(figures_->fall_watts_per_second, -change);
    }
  }

 private:
  void AddToMinutes(double from, double to, double watts) {
    auto minute = static_cast<std::size_t>(from / kSecondsOfMinute);
    while (from < to) {
      const double end = std::min(to, static_cast<double>(minute + 1) * kSecondsOfMinute);
      if (minute >= minutes_.size()) minutes_.resize(minute + 1, 0.0);
      minutes_[minute] += watts * (end - from);
      from = end;
      ++minute;
    }
  }

  const DaysSite& site_;
  LimitCalendar limits_;
  DaysFigures* figures_;
  std::vector<double> minutes_;  // Joules in each.
};

void AddPower(const DaysSite& site, const LoadTree& tree, const RuleDays& days, double seconds,
              DaysFigures* figures) {
  const std::vector<LoadChange> changes = LoadChanges(days);
  const std::vector<double> others = OtherChanges(site, seconds);
  PowerAccount account(site, figures);
  std::vector<double> watts(days.jobs.size(), 0.0);
  std::vector<double> loads = tree.None();
  double at = 0;
  std::size_t next = 0;
  std::size_t other = 0;
  while (next < changes.size() || other < others.size()) {
    const bool is_load =
        other == others.size() || (next < changes.size() && changes[next].seconds <= others[other]);
    const double to = is_load ? changes[next].seconds : others[other];
    account.Add(at, to, loads);
    at = std::max(at, to);
    if (!is_load) {
      ++other;
      continue;
    }
    watts[changes[next].job] = changes[next].watts;
    ++next;
    // Many jobs may change at once; a sum made anew does not drift.
    if (next < changes.size() && changes[next].seconds <= at) continue;
    loads = tree.None();
    for (std::size_t j = 0; j < watts.size(); ++j) {
      if (watts[j] > 0) tree.Add(j, watts[j], &loads);
    }
  }
  account.Finish(seconds);
}

}  // namespace

DaysFigures FiguresOf(const DaysSite& site, const LoadTree& tree, const RuleDays& days,
                      double seconds) {
  DaysFigures figures;
  double work = 0;
  double full_work = 0;
  double kept = 0;
  double kept_squares = 0;
  int counted = 0;
  for (std::size_t j = 0; j < days.jobs.size(); ++j) {
    double of_job = 0;
    double full = 0;
    for (const JobSpan& span : days.jobs[j].spans) {
      const double length = span.to_seconds - span.from_seconds;
      of_job += span.speed * length;
      full += span.full_speed * length;
      if (span.too_slow) figures.too_slow_seconds += length;
    }
    work += site.jobs[j].fleet.weight * of_job;
    full_work += site.jobs[j].fleet.weight * full;
    if (days.jobs[j].missed) figures.deadlines_missed += 1;
    if (!(full > 0)) continue;
    ++counted;
    kept += of_job / full;
    kept_squares += of_job / full * of_job / full;
  }
  if (full_work > 0) figures.lost_percent = 100 * (1 - work / full_work);
  if (kept_squares > 0) figures.fairness = kept * kept / (counted * kept_squares);
  AddPower(site, tree, days, seconds, &figures);
  return figures;
}

double ValueAt(const StepSeries& series, double seconds) {
  if (series.empty()) return 0;
  const auto after =
      std::upper_bound(series.begin(), series.end(), seconds,
                       [](double value, const SeriesStep& step) { return value < step.seconds; });
  return after == series.begin() ? series.front().value : (after - 1)->value;
}

std::vector<std::vector<double>> PowerSeries(const RuleDays& days, double seconds, int intervals) {
  const double length = seconds / intervals;
  std::vector<std::vector<double>> series;
  for (const JobDays& job : days.jobs) {
    std::vector<double>& watts = series.emplace_back(static_cast<std::size_t>(intervals), 0.0);
    for (const JobSpan& span : job.spans) {
      auto i = static_cast<std::size_t>(span.from_seconds / length);
      for (; i < watts.size() && static_cast<double>(i) * length < span.to_seconds; ++i) {
        const double from = std::max(span.from_seconds, static_cast<double>(i) * length);
        const double to = std::min(span.to_seconds, static_cast<double>(i + 1) * length);
        if (to > from) watts[i] += span.watts * (to - from) / length;
      }
    }
  }
  return series;
}

}  // namespace perseus::site
