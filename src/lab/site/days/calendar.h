// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_CALENDAR_H_
#define PERSEUS_SITE_DAYS_CALENDAR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "site/days/days.h"

namespace perseus::site {

// What happens whatever a rule does.

struct StragglingTime {
  int pipeline = 0;
  double from_seconds = 0;
  double to_seconds = 0;
};

// A job in the days of a seed.
struct JobCalendar {
  double arrives_seconds = 0;
  double leaves_seconds = 0;                    // At the latest: the end of the days.
  std::vector<StragglingTime> straggling = {};  // By begin; no two of a pipeline at once.
};

// Draws arrivals and stragglers: [job]. In each minute a straggler may come.
std::vector<JobCalendar> DrawCalendar(const DaysSite& site, double seconds, std::uint64_t seed);

// How many times as slow the pipelines are that straggle at this time.
std::vector<double> SlowAt(const DaysJob& job, const JobCalendar& calendar, double seconds);

// How much longer than usual iteration `number` takes.
double NoiseOf(double noise, std::uint64_t seed, std::size_t job, std::int64_t number);

// The limits of nodes over time.
class LimitCalendar {
 public:
  explicit LimitCalendar(const DaysSite& site) : site_(site) {}

  // Of events that are on.
  double LimitAt(std::size_t node, double seconds) const;
  // The least of this moment and of events that are known and begin within `ahead_seconds`.
  double LimitWithin(std::size_t node, double seconds, double ahead_seconds) const;
  // When the next event becomes known, begins or ends, or its begin comes within `ahead_seconds`.
  std::optional<double> NextChange(double seconds, double ahead_seconds) const;
  // While it is on.
  double LimitOf(const PowerEvent& event) const;

 private:
  const DaysSite& site_;
};

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_CALENDAR_H_
