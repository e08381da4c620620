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

double Covariance(double a, double b, const CurvePrior& prior) {
  const double near = std::min(a, b);
  const double far = std::max(a, b);
  const double smooth = near * near * (3 * far - near) / 6;
  return prior.offset * prior.offset + prior.slope * prior.slope * near * far +
         prior.bend * prior.bend * smooth;
}

}  // namespace

SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior) {
  SymmetricMatrix covariance(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = Covariance(points[i].below, points[j].below, prior);
      if (i == j) value += prior.jump * prior.jump + (points[i].apart ? kApart * kApart : 0);
      covariance.at(i, j) = covariance.at(j, i) = value;
    }
  }
  return covariance;
}

SmoothedCurve SmoothCurve(const std::vector<CurvePoint>& points,
                          const std::vector<CurveValue>& values,
                          const std::vector<CurvePoint>& between) {
  const std::size_t count = points.size();
  double mean = 0;
  for (const CurveValue& value : values) mean += value.value / static_cast<double>(count);
  std::vector<double> deviation;
  deviation.reserve(values.size());
  for (const CurveValue& value : values) deviation.push_back(value.value - mean);
  double best = -std::numeric_limits<double>::infinity();
  SmoothedCurve likeliest;
  std::vector<CurveValue>& smooth = likeliest.values;
  smooth.resize(count + between.size());
  for (const double bend : kBends) {
    for (const double jump : kJumps) {
      const CurvePrior prior{.offset = 1, .slope = 3, .bend = bend, .jump = jump};
      SymmetricMatrix whole = CurveCovariance(points, prior);
      for (std::size_t i = 0; i < count; ++i) whole.at(i, i) += values[i].variance;
      const Cholesky factor(whole);
      const std::vector<double> weights = factor.Solve(deviation);
      const double likelihood =
          -0.5 * (factor.LogDeterminant() +
                  std::inner_product(deviation.begin(), deviation.end(), weights.begin(), 0.0));
      if (!(likelihood > best)) continue;
      best = likelihood;
      likeliest.jump = jump;
      // The prior's own errors are those of measuring: value - V (K + V)^-1 deviation.
      const SymmetricMatrix inverse = factor.Inverse();
      for (std::size_t i = 0; i < count; ++i) {
        const double error = values[i].variance;
        smooth[i] = {values[i].value - error * weights[i],
                     std::max(0.0, error - error * error * inverse.at(i, i))};
      }
      for (std::size_t k = 0; k < between.size(); ++k) {
        const double at = between[k].below;
        std::vector<double> shared;
        shared.reserve(count);
        for (const CurvePoint& point : points) shared.push_back(Covariance(at, point.below, prior));
        const std::vector<double> solved = factor.Solve(shared);
        const double explained =
            std::inner_product(shared.begin(), shared.end(), solved.begin(), 0.0);
        const double own = jump * jump;  // What this clock alone may do.
        smooth[count + k] = {
            mean + std::inner_product(shared.begin(), shared.end(), weights.begin(), 0.0),
            own + std::max(0.0, Covariance(at, at, prior) - explained)};
      }
    }
  }
  return likeliest;
}

}  // namespace perseus::measure
