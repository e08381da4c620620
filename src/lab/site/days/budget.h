// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_BUDGET_H_
#define PERSEUS_SITE_DAYS_BUDGET_H_

#include <optional>

#include "site/days/calendar.h"
#include "site/days/days.h"

namespace perseus::site {

// What the site may draw, as its controller sees it: the limit, but moved in steps no faster than
// the ramps allow.
class Budget {
 public:
  explicit Budget(const DaysSite& site) : site_(site), limits_(site) {}

  // The budget of node 0 from now on. `drawn_watts`: what the jobs were told to draw, at the meter;
  // `most_watts`: what they would draw at maximum clocks. `ahead_seconds`: how long jobs may take
  // to obey.
  double At(double seconds, double drawn_watts, double most_watts, double ahead_seconds);
  // When the next step is due.
  std::optional<double> next_step() const { return next_step_; }

 private:
  const DaysSite& site_;
  LimitCalendar limits_;
  double budget_ = kNoPowerLimit;
  std::optional<double> next_step_;
  double last_seconds_ = 0;
  bool has_begun_ = false;
};

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_BUDGET_H_
