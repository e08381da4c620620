// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_DAYS_FILE_H_
#define PERSEUS_SITE_DAYS_DAYS_FILE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/tree_reader.h"
#include "perseus/job_file.h"
#include "perseus/result.h"
#include "site/days/days.h"
#include "site/site.h"

// What the table [emulate] of a site file says (docs/reference/files.md).
namespace perseus::site {

// A name in the file, and where it stands.
struct PlacedText {
  std::string text;
  JobPlace place;
};

// An [[emulate.event]]; `every` repeats it until the end of the days.
struct DaysEvent {
  PowerEvent event;
  std::optional<PlacedText> limit;  // A name of a [[limit]]; without: the site.
  std::optional<double> every_seconds;
};

// An [[emulate.job]]: about the job of this name, or about all copies of a [[job]] with `count`.
struct DaysOfJob {
  PlacedText name;
  std::optional<double> arrives_seconds;
  std::optional<double> every_seconds;  // Between the arrivals of copies.
  std::optional<double> spread_seconds;
  std::optional<double> lasts_seconds;
  std::optional<double> iterations;
  std::optional<double> deadline_seconds;
  double work_share = 1;
  std::optional<double> noise;
  std::optional<double> straggler_rate;
};

struct DaysFile {
  std::optional<PlacedText> price;   // A path as the file gives it.
  std::optional<PlacedText> carbon;  // Likewise.
  std::string currency;
  double ramp_up_watts_per_second = kNoPowerLimit;
  double ramp_down_watts_per_second = kNoPowerLimit;
  double work_share = 1;
  double noise = 0;
  ChanceOfStragglers stragglers;
  std::vector<DaysEvent> events;
  std::vector<DaysOfJob> jobs;
};

// For SiteReadOptions::days. `file`: the site file, for places.
void ReadDays(const TreeCursor& table, const std::string& file, DaysFile* days);

enum class SeriesKind { kPrice, kCarbon };
// A CSV of two columns: time_h (hours) or time (ISO 8601), and price_per_kwh, price_per_mwh or
// co2_g_per_kwh. Values are turned into those of a joule. Times begin at 0.
Result<StepSeries> ParseSeries(std::string_view text, const std::string& name, SeriesKind kind);

// All but the series. `seconds`: how long the days are. Makes plans and clocks of each model.
// Errors: names that are not there; a job without a profile; those of making plans.
Result<DaysSite> MakeDaysSite(const Site& site, const DaysFile& days, double seconds,
                              const ProgressFunction& progress);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_DAYS_FILE_H_
