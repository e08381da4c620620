// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_PROFILE_FIT_H_
#define PERSEUS_MEASURE_PROFILE_FIT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/curve.h"
#include "measure/kind.h"
#include "measure/recorder.h"

namespace perseus::measure {

// Estimates the energy of computations that are shorter than the counter's period, or not much
// longer. Single ones cannot be measured. But the energy between two steps of the counter (a
// stretch) is
//
//   sum over kinds (watts of the kind x its seconds in between)
//     + watts of waiting x seconds of waiting + the same for the rest,
//
// and as stretches have different mixes, generalised least squares give the watts. The errors of
// stretches are correlated: (1) The time of a step is only known to lie between two reads, which
// makes its energy uncertain; the stretches before and after the step share this error, with
// opposite signs. (2) The power of a computation differs at random from that of its kind; all
// stretches in which it runs share this error. The covariance includes both. It is a band matrix.

// The unknowns, in watts: waiting, the rest, then two for each kind. The first is its power. The
// second is how energy changes with work beyond power x time; its factor is
// relative_work x mean seconds of the kind x the share of the computation in the stretch, where
// relative_work = work / mean - 1.
inline constexpr std::size_t kWaitingColumn = 0;
inline constexpr std::size_t kRestColumn = 1;
inline constexpr std::size_t kFirstKindColumn = 2;
constexpr std::size_t PowerColumn(std::size_t kind) { return kFirstKindColumn + 2 * kind; }
constexpr std::size_t WorkColumn(std::size_t kind) { return PowerColumn(kind) + 1; }
constexpr std::size_t NumColumns(std::size_t kinds) { return kFirstKindColumn + 2 * kinds; }

// Relative spreads of the power of single computations that are tried.
inline constexpr std::array<double, 7> kPowerSpreads = {0.003, 0.007, 0.015, 0.03,
                                                        0.05,  0.08,  0.15};

// Facts of a kind before its energy is fitted.
struct KindScale {
  double mean_seconds = 0;
  double mean_work = 0;  // 0: all computations of the kind count as equal.
};

// The normal equations of whitened stretches for one value of kPowerSpreads.
struct NormalEquations {
  SymmetricMatrix normal;
  std::vector<double> right;
  double squares = 0;          // Of the whitened joules.
  double log_determinant = 0;  // Of their covariance.
};

struct StretchFit {
  std::array<NormalEquations, kPowerSpreads.size()> by_spread;
  std::size_t stretches = 0;
  double seconds = 0;  // Of all stretches.
  double waiting_seconds = 0;
  double joules = 0;
};

// How a counter shows energy. What it shows is old, and it measures power only in the last share of
// each of its periods, and takes it for the whole of it (Yang et al., arXiv 2312.02741).
struct CounterHabit {
  double lag_seconds = 0;
  double duty = 1;
  friend bool operator==(const CounterHabit&, const CounterHabit&) = default;
};

// Fits the iterations at one clock. Each element of `windows` is a sequence of iterations without
// gaps. `ticks`: in order of time. `scales`: one per kind.
StretchFit FitStretches(const std::vector<std::vector<Iteration>>& windows,
                        const std::vector<Tick>& ticks, const std::vector<KindScale>& scales,
                        const CounterHabit& habit = {});

// The observations of one visit to a clock.
struct Visit {
  std::vector<std::vector<Iteration>> windows;
  std::vector<Tick> ticks;
  std::vector<KindScale> scales;
};

// The habit that makes these visits most likely; the default one unless another one is much more
// likely. Lags of up to a second are tried, as far as the visits are long enough. None: the counter
// has stepped too rarely to tell.
std::optional<CounterHabit> FitHabit(const std::vector<Visit>& visits);
// Steps of the counter of which more do not make a habit surer.
inline constexpr std::size_t kHabitSteps = 200;

struct TimeSample {
  double seconds = 0;
  double work = 0;  // 0: not reported.
};

// Time of one kind's computations at one clock: `seconds` for the mean work `work`, plus `per_work`
// for each unit of work above it.
struct TimeSummary {
  std::int64_t samples = 0;
  double seconds = 0;
  double work = 0;
  std::optional<double> per_work;
  double residual_variance = 0;
};

// Means without outliers beyond 5 robust standard deviations (for example, a pause of the trainer).
// Fits a line if work varies by more than 2 %.
TimeSummary SummariseTimes(const std::vector<TimeSample>& samples);

// The clocks at which the card seems to have been throttled though it did not say so, descending:
// the highest ones, if no kind of computation is faster at them, or draws more, than at the lowest
// of them, and below it both change at once. Where only the times are alike the card waits for its
// memory, and is not held back. `rows`: measured ones. Empty: none.
std::vector<int> ThrottledClocks(const std::vector<Estimate>& rows);

// All measurements of one visit to a clock.
struct ClockRecord {
  int mhz = 0;       // Or kDefaultClockMhz.
  double visit = 0;  // Its number, in the order of time.
  bool throttled = false;
  std::optional<double> temperature_celsius;
  StretchFit stretches;
  std::vector<TimeSummary> times;  // Of each kind; no samples: it did not run.

  // A clock that was not measured. Its rows are read from the curves, with `samples` 0.
  static ClockRecord Predicted(int mhz) {
    ClockRecord record;
    record.mhz = mhz;
    record.predicted = true;
    return record;
  }
  bool predicted = false;

  // Whether it has a point on the curve of this kind. A predicted clock has one for all kinds.
  bool Has(std::size_t kind) const {
    return predicted || (kind < times.size() && times[kind].samples > 0);
  }
};

struct ProfileFit {
  std::vector<Estimate> rows;  // By clock, then by kind.
  // None: there was too little waiting to estimate it.
  std::optional<BlockingPower> blocking;
  // By clock that the card kept, highest first. Empty: the measurements do not show that it depends
  // on the clock, so `blocking` is taken as constant. Else `blocking` is that at the highest clock.
  std::vector<WaitingRow> waiting;
  // Relative standard deviation by which times at single clocks differ from the smooth curve,
  // without measurement errors. Maximum over the kinds.
  double jump = 0;
};

// Estimates times, energies and blocking power of all clocks in one fit. Each kind is a curve over
// the clocks (curve.h), on which what was measured at default clocks is not. Blocking power is one
// number, or, in a thorough fit and where it shows to depend on the clock, a curve of its own
// (waiting_curve.h); at default clocks it is taken to be that at the highest one. Several records
// may be of one clock. Standard errors are those of the posterior. If two kinds always run in the
// same mix, the fit cannot separate their power: both get the mean, with a large standard error.
//
// `thorough`: estimates how smooth the curves are and how much the card drifts, which takes about a
// hundred times as long. Else a middle value is used, and no drift. Cost: cubic in kinds x clocks
// up to 200, linear beyond.
ProfileFit FitProfile(const std::vector<Kind>& kinds, const std::vector<ClockRecord>& records,
                      bool thorough);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_PROFILE_FIT_H_
