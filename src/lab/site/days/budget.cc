// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/budget.h"

#include <algorithm>

namespace perseus::site {

double Budget::At(double seconds, double drawn_watts, double most_watts, double ahead_seconds) {
  constexpr double kStepSeconds = 15;
  const double up = site_.ramp_up_watts_per_second;
  const double down = site_.ramp_down_watts_per_second;
  next_step_.reset();
  double target = limits_.LimitWithin(0, seconds, ahead_seconds);
  if (down < kNoPowerLimit) {
    // The way down begins so early that it ends in time, where the notice allows.
    for (const PowerEvent& event : site_.events) {
      if (event.node != 0) continue;
      const double way = std::max(0.0, std::min(drawn_watts, budget_) - limits_.LimitOf(event));
      const double ahead = ahead_seconds + way / down;
      if (event.start_seconds <= seconds + ahead) {
        target = std::min(target, limits_.LimitWithin(0, seconds, ahead));
      } else if (seconds >= event.start_seconds - event.notice_seconds) {
        const double at = event.start_seconds - ahead;
        if (!next_step_ || at < *next_step_) next_step_ = at;
      }
    }
  }
  const double passed = has_begun_ ? std::min(kStepSeconds, seconds - last_seconds_) : 0;
  if (!has_begun_) budget_ = target;
  has_begun_ = true;
  last_seconds_ = seconds;
  if (target < std::min(budget_, drawn_watts)) {
    // From what is drawn: a limit far above it is no room to ramp in.
    const bool is_first = budget_ > drawn_watts;
    budget_ = std::max(target,
                       std::min(budget_, drawn_watts) - down * (is_first ? kStepSeconds : passed));
  } else if (target > budget_) {
    budget_ = std::min(target, budget_ + up * passed);
    if (budget_ >= most_watts) budget_ = target;
  } else {
    budget_ = target;
  }
  if (budget_ != target) next_step_ = seconds + kStepSeconds;
  return budget_;
}

}  // namespace perseus::site
