// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_CURVE_H_
#define PERSEUS_MEASURE_CURVE_H_

#include <array>
#include <vector>

#include "measure/dense.h"

// Smooths measurements over neighbouring clocks. Time and power change smoothly with the clock,
// except for effects of a card at single clocks. How smooth the curve is, is estimated: the prior
// with the highest marginal likelihood is used. If values jump between clocks (power caps), each
// clock then takes little information from its neighbours.
namespace perseus::measure {

// The prior of a curve: a straight line with wide uncertainty, plus a smooth deviation (an
// integrated Wiener process, the prior of cubic smoothing splines), plus an independent jump at
// each clock. All values are relative to the size of the curve.
struct CurvePrior {
  double offset = 0.5;  // Standard deviation of the line at the highest clock.
  double slope = 2;     // Standard deviation of the line's slope over the whole clock range.
  double bend = 2;      // Of the smooth deviation: change of slope over the whole clock range.
  double jump = 0.006;
};

// The priors that are tried.
inline constexpr std::array<double, 3> kBends = {0.5, 2, 8};
inline constexpr std::array<double, 4> kJumps = {0.0005, 0.002, 0.006, 0.02};

// A position on the curve: by which share the clock is below the highest one, 0 to 1.
struct CurvePoint {
  double below = 0;
  bool apart = false;  // Measured under throttling: it gives no information about other clocks.
};

SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior);

// A value with the variance of its error.
struct CurveValue {
  double value = 0;
  double variance = 0;
};

struct SmoothedCurve {
  std::vector<CurveValue> values;
  double jump = 0;  // CurvePrior::jump of the most likely prior.
};

// Smooths values measured at `points` with independent errors, under the most likely prior of
// kBends x kJumps. Also predicts the values at `between`.
SmoothedCurve SmoothCurve(const std::vector<CurvePoint>& points,
                          const std::vector<CurveValue>& values,
                          const std::vector<CurvePoint>& between = {});

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CURVE_H_
