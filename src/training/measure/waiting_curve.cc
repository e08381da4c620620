// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/waiting_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perseus::measure {
namespace {

// Standard errors that the difference must exceed. Each rank asks once, and a wrong yes costs more
// than a wrong no: plans would then wait at clocks that save nothing.
constexpr double kSure = 3;

double Dot(const std::array<double, kWaitingUnknowns>& a,
           const std::array<double, kWaitingUnknowns>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

std::array<double, kWaitingUnknowns> WaitingShape(int mhz, int highest_mhz) {
  const double x = std::pow(static_cast<double>(std::min(mhz, highest_mhz)) / highest_mhz, 2);
  return {1, x - 1, 4 * x * (1 - x)};
}

double WaitingCurve::VarianceOf(const std::array<double, kWaitingUnknowns>& weights) const {
  double variance = 0;
  for (std::size_t i = 0; i < kWaitingUnknowns; ++i) {
    for (std::size_t j = 0; j < kWaitingUnknowns; ++j) {
      variance += weights[i] * weights[j] * covariance.at(i, j);
    }
  }
  return std::max(0.0, variance);
}

BlockingPower WaitingCurve::At(int mhz) const {
  const auto shape = WaitingShape(mhz, highest_mhz);
  return {.watts = Dot(shape, watts), .watts_std = std::sqrt(VarianceOf(shape))};
}

bool WaitingCurve::DependsOnClock(int low_mhz) const {
  auto difference = WaitingShape(low_mhz, highest_mhz);
  difference.front() = 0;  // The highest clock's shape is 1, 0, 0.
  return std::abs(Dot(difference, watts)) > kSure * std::sqrt(VarianceOf(difference));
}

}  // namespace perseus::measure
