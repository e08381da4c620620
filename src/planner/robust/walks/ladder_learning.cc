// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "robust/walks/ladder_search.h"

// What the search learns from verdicts: what the lanes do not know, and what it has learned by
// heart from them.
namespace perseus::robust {

void LadderSearch::SetGuard(double errors) {
  replay_.SetGuard(errors);
  if (windows_) windows_->SetGuard(errors);
}

double LadderSearch::PercentOfGuard(const std::vector<int>& knobs, double guard) {
  constexpr double kStep = 0.25;
  const auto seconds = [&](double errors) {
    SetGuard(errors);
    replay_.Reset(knobs);
    return replay_.figures().seconds;
  };
  const double more = seconds(guard + kStep);
  return 100 * (more - seconds(guard)) / kStep / lanes_baseline_seconds_;
}

// From a verdict on knobs, where the lanes have groups.
void LadderSearch::LearnBias(const Verdict& verdict, const std::vector<int>& knobs, Level* level) {
  replay_.Reset(knobs);
  groups_.LearnBias(trials_, verdict.slower_at, replay_, samples_, &level->bias);
  groups_.SetScales(level->bias, &samples_);
}

// Errors of the profile make a plan late where it has no slack beside slowed computations. To plan
// for less time takes slack where there is none to take, and in the end leaves less time than
// maximum clocks need. So the lanes take slowed computations to last longer, by as many standard
// errors as it needs for a choice to hold. False: that is not it.
bool LadderSearch::LearnGuard(double excess_percent, const std::vector<int>& knobs, Level* level) {
  constexpr double kMost = 4;      // Standard errors.
  constexpr double kMostStep = 1;  // Likewise.
  constexpr double kLeast = 0.01;  // Per cent: what one standard error does not change.
  if (!trials_.has_errors()) return false;
  const double percent = PercentOfGuard(knobs, level->guard);
  if (percent < kLeast) return false;
  double step = std::clamp(excess_percent / percent, -kMostStep, kMostStep);
  if (excess_percent < 0) step /= 2;
  // Between a guard that was too little and one that was too much, on the line between both.
  const double other = level->excess_before;
  if (excess_percent * other < 0) {
    step = (level->guard_before - level->guard) * excess_percent / (excess_percent - other);
  }
  const double guard = std::clamp(level->guard + step, 0.0, kMost);
  if (guard == level->guard) return false;
  level->guard_before = level->guard;
  level->excess_before = excess_percent;
  level->guard = guard;
  SetGuard(guard);
  return true;
}

void LadderSearch::Learn(const Verdict& verdict, double unused_percent,
                         const std::vector<int>& knobs, Level* level) {
  constexpr double kLittle = 0.001;
  const double late = verdict.late_percent;
  // A plan in time says something only where it used all that it might.
  const double excess = late > 0 ? late : std::min(0.0, late + unused_percent);
  if (LearnGuard(excess, knobs, level)) return;
  if (groups_.many()) {
    LearnBias(verdict, knobs, level);
  } else if (late > 0) {
    const double spare = slower_percent_ - level->correction;
    level->correction += late + kLittle;
    // What is drawn once per job is a multiple of what a plan is slower: to take all of it off
    // would leave less time than maximum clocks take.
    if (trials_.once() && spare > 0 && slower_percent_ > 0 &&
        level->correction >= slower_percent_) {
      level->correction =
          slower_percent_ - spare * slower_percent_ / (slower_percent_ + late + kLittle);
    }
  } else if (excess < -kLittle) {
    level->correction += excess / 2;
  }
}

}  // namespace perseus::robust
