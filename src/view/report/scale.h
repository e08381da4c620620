// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_SCALE_H_
#define PERSEUS_SRC_REPORT_SCALE_H_

#include <vector>

namespace perseus::report {

// From data units to pixels, linearly.
struct Scale {
  double low = 0, high = 1;  // In data units.
  double pixel_low = 0, pixel_high = 1;

  double operator()(double value) const {
    return pixel_low + (value - low) / (high - low) * (pixel_high - pixel_low);
  }
};

// About `count` round numbers within [low, high], ascending.
std::vector<double> RoundTicks(double low, double high, int count);

// Decimals that tell round numbers from each other.
int TickDecimals(const std::vector<double>& ticks);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_SCALE_H_
