// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace perseus::measure {
namespace {

constexpr double kApart = 0.3;

}  // namespace

SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior) {
  SymmetricMatrix covariance(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double near = std::min(points[i].below, points[j].below);
      const double far = std::max(points[i].below, points[j].below);
      const double smooth = near * near * (3 * far - near) / 6;
      double value = prior.offset * prior.offset + prior.slope * prior.slope * near * far +
                     prior.bend * prior.bend * smooth;
      if (i == j) value += prior.jump * prior.jump + (points[i].apart ? kApart * kApart : 0);
      covariance.at(i, j) = covariance.at(j, i) = value;
    }
  }
  return covariance;
}

std::vector<CurveValue> SmoothCurve(const std::vector<CurvePoint>& points,
                                    const std::vector<CurveValue>& values) {
  const std::size_t count = points.size();
  double mean = 0;
  for (const CurveValue& value : values) mean += value.value / static_cast<double>(count);
  std::vector<double> deviation;
  for (const CurveValue& value : values) deviation.push_back(value.value - mean);
  double best = -std::numeric_limits<double>::infinity();
  std::vector<CurveValue> smooth = values;
  for (const double bend : kBends) {
    for (const double jump : kJumps) {
      const SymmetricMatrix prior =
          CurveCovariance(points, {.offset = 3, .slope = 4, .bend = bend, .jump = jump});
      SymmetricMatrix whole = prior;
      for (std::size_t i = 0; i < count; ++i) whole.at(i, i) += values[i].variance;
      const Cholesky factor(whole);
      const std::vector<double> weights = factor.Solve(deviation);
      const double likelihood =
          -0.5 * (factor.LogDeterminant() +
                  std::inner_product(deviation.begin(), deviation.end(), weights.begin(), 0.0));
      if (!(likelihood > best)) continue;
      best = likelihood;
      // The prior's own errors are those of measuring: value - V (K + V)^-1 deviation.
      const SymmetricMatrix inverse = factor.Inverse();
      for (std::size_t i = 0; i < count; ++i) {
        const double error = values[i].variance;
        smooth[i] = {values[i].value - error * weights[i],
                     std::max(0.0, error - error * error * inverse.at(i, i))};
      }
    }
  }
  return smooth;
}

}  // namespace perseus::measure
