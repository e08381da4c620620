// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/scale.h"

#include <cmath>

#include "report/text.h"

namespace perseus::report {

std::vector<double> RoundTicks(double low, double high, int count) {
  std::vector<double> ticks;
  const double rough = (high - low) / count;
  if (!(rough > 0) || !std::isfinite(rough)) return ticks;
  double power = 1;
  while (power > rough) power /= 10;
  while (power * 10 <= rough) power *= 10;
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  const double first = std::ceil(low / step);
  for (double k = first; k * step <= high * (1 + 1e-12) && ticks.size() < 64; ++k) {
    ticks.push_back(RoundSignificant(k * step, 12));
  }
  return ticks;
}

int TickDecimals(const std::vector<double>& ticks) {
  if (ticks.size() < 2) return 3;
  const double step = ticks[1] - ticks[0];
  int decimals = 0;
  for (double unit = 1; decimals < 9; unit /= 10, ++decimals) {
    const double steps = step / unit;
    if (std::abs(steps - std::round(steps)) < 1e-6 * steps) break;
  }
  return decimals;
}

}  // namespace perseus::report
