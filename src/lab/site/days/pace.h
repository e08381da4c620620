// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_PACE_H_
#define PERSEUS_SITE_DAYS_PACE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "site/days/days.h"

namespace perseus::site {

// A pause ends at once, an iteration does not. So a job that would wait for longer than this many
// times its slowest plan is paused.
inline constexpr double kLongestWait = 10;

inline constexpr double kPaused = std::numeric_limits<double>::infinity();

// What a rule tells a job to do until it says something else.
struct JobRun {
  IterationPoint healthy = {};  // Of each healthy pipeline. Time kPaused: the job waits.
  IterationPoint late = {};     // Of a late pipeline, before it is as slow as it is.
  std::int64_t choice = 0;      // Tells plans from each other.
};

// How fast a job then is, and what it draws: GPUs and fixed power.
struct JobPace {
  double seconds = kPaused;  // Of an iteration.
  double watts = 0;

  double iterations_per_second() const { return seconds < kPaused ? 1 / seconds : 0; }
};

// `slow`: how many times as slow each pipeline is that straggles by chance. All pipelines of an
// iteration wait for the last.
JobPace PaceOf(const DaysJob& job, const JobRun& run, std::span<const double> slow);

// Maximum clocks.
JobRun FullRun(const DaysJob& job);
// All pipelines wait.
JobRun PausedRun();

// The longest iteration that the owner accepts; no less than its stragglers take anyway.
double AcceptedSeconds(const DaysJob& job, std::span<const double> slow);

// What a job may be told, and what follows.
struct PaceOption {
  JobRun run;
  JobPace pace;
  double cap = 0;  // Of a CappedPoint.
};
// Watts ascending and times descending, within what the owner accepts (`accepted`: any time where
// infinite). Never empty: where nothing is fast enough, it holds the fastest.
std::vector<PaceOption> ClockOptions(const DaysJob& job, std::span<const double> slow,
                                     double accepted);
std::vector<PaceOption> PlanOptions(const DaysJob& job, std::span<const double> slow,
                                    double accepted);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_PACE_H_
