// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_DAYS_REPORT_H_
#define PERSEUS_SITE_DAYS_DAYS_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/note.h"
#include "site/days/days.h"

namespace perseus::site {

// All that outputs say. Pointers are not owned and must outlive the call.
struct DaysReport {
  const DaysSite* site = nullptr;
  const DaysAnswer* answer = nullptr;
  double seconds = 0;
  std::vector<std::uint64_t> seeds = {};
  std::string name = {};      // Of the site file.
  std::string currency = {};  // As the file gives it; may be empty.
  std::vector<Note> notes = {};
};

// A figure over the seeds. The deviation is that of a sample; 0 with one seed.
struct Spread {
  double mean = 0;
  double deviation = 0;
  double least = 0;
  double most = 0;
};
Spread SpreadOf(const std::vector<DaysFigures>& figures, double DaysFigures::*figure);

// The figures in the order of JSON. `factor`: what one unit of the name is.
struct NamedFigure {
  std::string_view name;
  double DaysFigures::*figure;
  double factor;
};
std::span<const NamedFigure> DaysFigureList();

// Jobs of one [[job]], as a rule treated them in the first seed.
struct GroupDays {
  std::string name;
  int jobs = 0;
  std::int64_t gpus = 0;
  double full_watts = 0;    // Mean while they are there, at the meter: at maximum clocks,
  double watts = 0;         // and as the rule has it.
  double lost_percent = 0;  // Of their work.
  // The same while a limit is below the usual one; 0 without events.
  double full_watts_in_events = 0;
  double watts_in_events = 0;
  double lost_percent_in_events = 0;
};
std::vector<GroupDays> GroupsOf(const DaysSite& site, const RuleDays& days, double seconds);

// Whether a column has anything to say.
bool HasPrice(const DaysSite& site);
bool HasCarbon(const DaysSite& site);

// The rule with this name, or nullptr.
const RuleAnswer* FindRule(const DaysAnswer& answer, std::string_view rule);

// fleet-days.json (docs/reference/files.md).
std::string FormatDaysJson(const DaysReport& report);
// power.csv: the power of the site under each rule, minute by minute, in the first seed.
std::string FormatDaysCsv(const DaysReport& report);
// report.html: one file that opens without network.
std::string FormatDaysHtml(const DaysReport& report);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_DAYS_REPORT_H_
