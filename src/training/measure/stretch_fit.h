// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_STRETCH_FIT_H_
#define PERSEUS_MEASURE_STRETCH_FIT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "measure/counter.h"
#include "measure/dense.h"
#include "measure/timeline.h"

// Energy of computations that are shorter than the counter's period, or not much
// longer. No single one can be metered, but the joules between two steps of the
// counter are
//
//   sum over kinds (watts of the kind x its seconds in between)
//     + watts of waiting x seconds of waiting + the same of the rest,
//
// and stretches of different mixes tell the watts apart: generalised least squares.
// The errors of stretches are not independent. (1) When a step happened is known to
// lie between two reads, so its energy is uncertain by the watts at that time; the
// stretch before and the one after share this error, with opposite signs. (2) Each
// computation's power differs by chance from its kind's, and a long one's
// difference is shared by all stretches in which it runs. Both are in the
// covariance, which is banded.
namespace perseus::measure {

// Unknowns, in watts: waiting, the rest, then two of each kind: its power, and
// what energy varies by with work beside what power x time says. With
// `relative_work` = work / mean - 1 the latter counts
// relative_work x mean seconds of the kind x the part of the computation.
inline constexpr std::size_t kWaitingColumn = 0;
inline constexpr std::size_t kRestColumn = 1;
inline constexpr std::size_t kFirstKindColumn = 2;
constexpr std::size_t PowerColumn(std::size_t kind) { return kFirstKindColumn + 2 * kind; }
constexpr std::size_t WorkColumn(std::size_t kind) { return PowerColumn(kind) + 1; }
constexpr std::size_t NumColumns(std::size_t kinds) { return kFirstKindColumn + 2 * kinds; }

// How much the power of single computations is tried to vary, relative.
inline constexpr std::array<double, 7> kPowerSpreads = {0.003, 0.007, 0.015, 0.03,
                                                        0.05,  0.08,  0.15};

// What is known of a kind before its energy is fitted.
struct KindScale {
  double mean_seconds = 0;
  double mean_work = 0;  // 0: all are taken as alike.
};

// The normal equations of whitened stretches, of one value of kPowerSpreads.
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

// Of iterations at one clock: each element of `windows` is a run of iterations, one
// right after the other. `ticks` in order. `scales`: of each kind.
StretchFit FitStretches(const std::vector<std::vector<Iteration>>& windows,
                        const std::vector<Tick>& ticks, const std::vector<KindScale>& scales);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_STRETCH_FIT_H_
