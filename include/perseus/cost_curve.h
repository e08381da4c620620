// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COST_CURVE_H_
#define PERSEUS_COST_CURVE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <span>

#include "perseus/export.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One measured way to run a computation.
struct TimeEnergy {
  double time_seconds = 0;
  double energy_joules = 0;
};

// The cost curve of the paper (Chung et al., SOSP'24): energy as a convex,
// falling function of time,
//
//   e(t) = a exp(b (t - origin)) + c    with a >= 0, b <= 0.
//
// The origin only keeps `a` within the range of a double: the paper's `a` is
// a exp(-b origin). A plain value.
struct ExponentialFit {
  double a = 0;               // Joules.
  double b = 0;               // 1 / second.
  double c = 0;               // Joules.
  double origin_seconds = 0;  // The least time fitted.
  // Share of the variance of the energies that the curve explains; 1 where
  // they have none.
  double r_squared = 0;

  // Energy in joules at a time not below the origin.
  double operator()(double time_seconds) const;
};

// The fit of least squares, by variable projection. One point, equal times or rising energies give
// a constant. Errors: no points, a number that is not finite or beyond 1e100. Thread-safe. The last
// bits may differ between machines, as their math libraries do.
Result<ExponentialFit> FitExponential(std::span<const TimeEnergy> points);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_COST_CURVE_H_
