// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_CURVE_H_
#define PERSEUS_MEASURE_CURVE_H_

#include <array>
#include <vector>

#include "measure/dense.h"

// What neighbouring clocks say about each other. Time and power change smoothly
// with the clock, up to what a card does at single clocks; how smoothly is not
// assumed but found: the values under which the measurements are likeliest (marginal
// likelihood). Where a card's tables jump (power caps), little is borrowed.
namespace perseus::measure {

// A curve is a straight line, known hardly at all, plus a smooth deviation (an
// integrated Wiener process, the prior of cubic smoothing splines), plus a jump of
// each clock's own. All relative to the curve's size.
struct CurvePrior {
  double offset = 0.5;  // Standard deviations: of the line at the highest clock,
  double slope = 2;     // and of its slope over the whole clock.
  double bend = 2;      // Of the smooth deviation: change of slope over the whole clock.
  double jump = 0.006;
};

// What is tried.
inline constexpr std::array<double, 3> kBends = {0.5, 2, 8};
inline constexpr std::array<double, 4> kJumps = {0.0005, 0.002, 0.006, 0.02};

// Where on the curve: its clock as a share below the highest, 0 to 1.
struct CurvePoint {
  double below = 0;
  bool apart = false;  // Taken under throttling: it says nothing of the others.
};

SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior);

// A value with the variance of its error.
struct CurveValue {
  double value = 0;
  double variance = 0;
};

struct SmoothedCurve {
  std::vector<CurveValue> values;
  double jump = 0;  // Of the likeliest prior.
};

// Values that were measured at `points`, with independent errors, under the likeliest
// prior of kBends x kJumps; then what it says of each of `between`.
SmoothedCurve SmoothCurve(const std::vector<CurvePoint>& points,
                          const std::vector<CurveValue>& values,
                          const std::vector<CurvePoint>& between = {});

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CURVE_H_
