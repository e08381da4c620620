// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_STRETCH_FIT_H_
#define PERSEUS_MEASURE_STRETCH_FIT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "measure/counter.h"
#include "measure/dense.h"
#include "measure/timeline.h"

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
namespace perseus::measure {

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

// What is known of a kind before its energy is fitted.
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

// What was seen in one visit to a clock.
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

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_STRETCH_FIT_H_
