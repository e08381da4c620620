// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/fleet/fleet_actions.h"
#include "cli/fleet/fleet_summary.h"
#include "cli/framework/outputs.h"
#include "cli/framework/table.h"
#include "cli/planning/plan_notes.h"
#include "common/belief.h"
#include "common/file.h"
#include "common/located_error.h"
#include "perseus/fleet.h"
#include "perseus/note.h"
#include "site/days/calendar.h"
#include "site/days/days_file.h"
#include "site/days/days_report.h"
#include "site/site.h"

// `perseus fleet emulate`.
namespace perseus::cli {
namespace {

constexpr std::string_view kDaysJson = "fleet-days.json";
constexpr std::string_view kDaysCsv = "power.csv";
constexpr std::string_view kDaysHtml = "report.html";

std::string BesideFile(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

std::vector<InputFile> InputsOfDays(const std::string& path, const site::SiteFile& file,
                                    const site::DaysFile& days) {
  std::vector<InputFile> inputs = {{"the site file", path}};
  for (const site::SiteJob& job : file.jobs) {
    if (job.settings.profile) inputs.push_back({"a job's profile", *job.settings.profile});
  }
  for (const auto& series : {days.price, days.carbon}) {
    if (series) inputs.push_back({"a series", BesideFile(path, series->text)});
  }
  return inputs;
}

// A series must cover the days; its last value holds as long as the one before.
Result<site::StepSeries> ReadSeries(const FleetFlags& flags, const site::PlacedText& placed,
                                    site::SeriesKind kind) {
  constexpr std::size_t kMostBytes = 16U << 20U;
  const std::string path = BesideFile(flags.input, placed.text);
  const Result<std::string> text = ReadWholeFile(path, kMostBytes);
  if (!text) {
    return InvalidAt(placed.place.file, placed.place.line, placed.place.column,
                     text.error().message);
  }
  Result<site::StepSeries> series = site::ParseSeries(*text, path, kind);
  if (!series) return series;
  const double last = series->back().seconds;
  const double before = series->size() > 1 ? (*series)[series->size() - 2].seconds : 0;
  const double end = series->size() > 1 ? last + (last - before) : kNoPowerLimit;
  if (end < flags.days * site::kSecondsOfDay) {
    return InvalidAt(
        placed.place.file, placed.place.line, placed.place.column,
        fmt::format("{} ends after {:.4g} days, and {:.4g} are emulated; give a longer "
                    "series, or fewer --days",
                    path, end / site::kSecondsOfDay, flags.days));
  }
  return series;
}

Result<void> AddSeries(const FleetFlags& flags, const site::DaysFile& days, site::DaysSite* made) {
  if (days.price) {
    auto series = ReadSeries(flags, *days.price, site::SeriesKind::kPrice);
    if (!series) return tl::unexpected(series.error());
    made->price_per_joule = *std::move(series);
  }
  if (days.carbon) {
    auto series = ReadSeries(flags, *days.carbon, site::SeriesKind::kCarbon);
    if (!series) return tl::unexpected(series.error());
    made->co2_grams_per_joule = *std::move(series);
  }
  return {};
}

std::string SpreadText(const site::RuleAnswer& rule, double site::DaysFigures::*figure,
                       double factor, int decimals) {
  const site::Spread spread = site::SpreadOf(rule.figures, figure);
  std::string text = WithThousands(spread.mean / factor, decimals);
  if (rule.figures.size() > 1) {
    text += " +- " + WithThousands(spread.deviation / factor, decimals);
  }
  return text;
}

std::string DaysTable(const site::DaysReport& report, const Style& style) {
  using site::DaysFigures;
  const bool has_price = site::HasPrice(*report.site);
  const bool has_carbon = site::HasCarbon(*report.site);
  std::vector<std::string> header = {"rule", "work lost %", "energy MWh"};
  if (has_price) {
    header.push_back(report.currency.empty() ? "cost" : "cost " + report.currency);
  }
  if (has_carbon) header.emplace_back("CO2 t");
  header.insert(header.end(), {"over limit min", "by at most kW"});
  if (report.answer->deadlines > 0) header.emplace_back("deadlines missed");
  header.insert(header.end(), {"too slow h", "fairness", "plan changes"});
  Table table(header, {Align::kLeft});
  for (const site::RuleAnswer& rule : report.answer->rules) {
    std::vector<std::string> cells = {
        rule.title, SpreadText(rule, &DaysFigures::lost_percent, 1, 2),
        SpreadText(rule, &DaysFigures::energy_joules, site::kJoulesOfMwh, 3)};
    if (has_price) cells.push_back(SpreadText(rule, &DaysFigures::cost, 1, 2));
    if (has_carbon) cells.push_back(SpreadText(rule, &DaysFigures::co2_grams, 1e6, 3));
    cells.push_back(SpreadText(rule, &DaysFigures::over_seconds, 60, 1));
    cells.push_back(SpreadText(rule, &DaysFigures::over_most_watts, 1e3, 2));
    if (report.answer->deadlines > 0) {
      cells.push_back(SpreadText(rule, &DaysFigures::deadlines_missed, 1, 1));
    }
    cells.push_back(SpreadText(rule, &DaysFigures::too_slow_seconds, site::kSecondsOfHour, 1));
    cells.push_back(SpreadText(rule, &DaysFigures::fairness, 1, 4));
    cells.push_back(SpreadText(rule, &DaysFigures::plan_changes, 1, 0));
    table.AddRow(std::move(cells));
  }
  return table.Format(style.rule());
}

std::string DaysText(const site::DaysReport& report, const Style& style) {
  std::int64_t gpus = 0;
  for (const site::DaysJob& job : report.site->jobs) gpus += job.gpus;
  std::string text = FormatNotes(report.notes, style);
  if (!text.empty()) text += "\n";
  text += Wrap(fmt::format("{} on {} for {:.4g} day{}, {}. The usual limit is {}. Nothing ran on a "
                           "GPU: power and speed are those of profiles.",
                           CountOf(static_cast<long long>(report.site->jobs.size()), "job"),
                           CountOf(gpus, "GPU"), report.seconds / site::kSecondsOfDay,
                           report.seconds == site::kSecondsOfDay ? "" : "s",
                           CountOf(static_cast<long long>(report.seeds.size()), "seed"),
                           FormatWatts(report.site->nodes.front().limit_watts)),
               style.columns, 0) +
          "\n\n" + DaysTable(report, style) + "\n";
  text +=
      Wrap(fmt::format(
               "Work lost is against maximum clocks in the same days. Too slow: hours of jobs that "
               "were slower than their owners accept, or paused. Fairness is 1 where all jobs keep "
               "the same share of their work.{}",
               report.seeds.size() > 1 ? " +-: the standard deviation between seeds." : ""),
           style.columns, 0);
  return text + "\n";
}

// Says so where a limit is below what all jobs need, be it the usual one or that of an event.
Result<void> NoteShortages(site::Site site, const site::DaysSite& days, std::vector<Note>* notes) {
  const site::LimitCalendar limits(days);
  for (const site::PowerEvent& event : days.events) {
    double& limit = site.power.nodes[event.node].limit_watts;
    limit = std::min(limit, limits.LimitOf(event));
  }
  const Result<std::vector<PowerShortage>> shortages = FindShortages(site.power);
  if (!shortages) return tl::unexpected(shortages.error());
  if (shortages->empty()) return {};
  notes->push_back({.text = "while all jobs are there, no rule can keep a limit without pausing "
                            "some: " +
                            ShortageError(site, *shortages).message});
  return {};
}

}  // namespace

Result<Printout> RunFleetEmulate(const FleetFlags& flags, const Style& style) {
  site::DaysFile days;
  Result<site::SiteFile> file = site::ReadSiteFile(
      flags.input, {.days = [&](const TreeCursor& table) { ReadDays(table, flags.input, &days); },
                    .jobs_may_be_missing = false});
  if (!file) return tl::unexpected(file.error());
  if (!flags.output_directory.empty()) {
    const auto good =
        CheckOutputFiles(flags.output_directory,
                         {std::string(kDaysJson), std::string(kDaysCsv), std::string(kDaysHtml)},
                         InputsOfDays(flags.input, *file, days));
    if (!good) return tl::unexpected(good.error());
  }
  ProgressLine progress("frontiers");
  const Result<site::Site> site = site::LoadSite(*std::move(file), {}, progress.Function());
  if (!site) return tl::unexpected(site.error());
  if (auto good = RefuseUnbelievable(site->notes, kAcceptingInJobFile); !good) {
    return tl::unexpected(good.error());
  }
  progress.SetWhat("plans");
  const double seconds = flags.days * site::kSecondsOfDay;
  Result<site::DaysSite> made = site::MakeDaysSite(*site, days, seconds, progress.Function());
  if (!made) return tl::unexpected(made.error());
  if (auto good = AddSeries(flags, days, &*made); !good) return tl::unexpected(good.error());
  site::DaysSpec spec;
  spec.seconds = seconds;
  spec.seeds.clear();
  for (int s = 0; s < flags.seeds.value_or(1); ++s) {
    spec.seeds.push_back(flags.seed + static_cast<std::uint64_t>(s));
  }
  progress.SetWhat("days");
  spec.progress = progress.Function();
  const Result<site::DaysAnswer> answer = site::EmulateDays(*made, spec);
  if (!answer) return tl::unexpected(answer.error());

  site::DaysReport report;
  report.site = &*made;
  report.answer = &*answer;
  report.seconds = seconds;
  report.seeds = spec.seeds;
  report.name = std::filesystem::path(flags.input).filename().string();
  report.currency = days.currency;
  report.notes = site->notes;
  if (auto good = NoteShortages(*site, *made, &report.notes); !good) {
    return tl::unexpected(good.error());
  }
  const std::string json = FormatDaysJson(report);
  if (!flags.output_directory.empty()) {
    const Result<void> written = WriteFilesAtomically(
        flags.output_directory, {{std::string(kDaysJson), json},
                                 {std::string(kDaysCsv), FormatDaysCsv(report)},
                                 {std::string(kDaysHtml), FormatDaysHtml(report)}});
    if (!written) return tl::unexpected(written.error());
  }
  return Printout(flags.json ? json : DaysText(report, style), flags.output_directory);
}

}  // namespace perseus::cli
