// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/figures.h"

#include <algorithm>
#include <cmath>

namespace perseus::report {

double PercentOver(double value, double base) {
  return base == 0 ? 0 : 100 * (value - base) / base;
}

double PercentSaved(double value, double base) {
  return base == 0 ? 0 : 100 * (base - value) / base;
}

bool SameTime(double a, double b) {
  constexpr double kRelative = 1e-7;
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
}

}  // namespace perseus::report
