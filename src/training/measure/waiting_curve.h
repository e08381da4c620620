// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_WAITING_CURVE_H_
#define PERSEUS_MEASURE_WAITING_CURVE_H_

#include <array>
#include <cstddef>

#include "measure/dense.h"
#include "measure/kind.h"

// A GPU that waits spins in a kernel at the clock that is set. With x = (clock / highest clock)^2
// it draws
//
//   watts at the highest clock + slope (x - 1) + bend 4 x (1 - x).
//
// The bend is 0 for a + b clock^2. Its prior is narrow: wide enough for powers between the clock
// and its cube, so waits that are too short to be seen at single clocks still give a + b clock^2.
namespace perseus::measure {

// The weight of each of its unknowns at a clock. `highest_mhz`: the highest that the card keeps;
// above, where it is throttled, it is taken to wait at that.
constexpr std::size_t kWaitingUnknowns = 3;
std::array<double, kWaitingUnknowns> WaitingShape(int mhz, int highest_mhz);

// Standard deviations of slope and bend before anything is measured, relative to the mean power of
// the card.
inline constexpr std::array<double, kWaitingUnknowns - 1> kWaitingSpreads = {0.25, 0.05};

struct WaitingCurve {
  std::array<double, kWaitingUnknowns> watts = {};
  SymmetricMatrix covariance{kWaitingUnknowns};
  int highest_mhz = 1;

  BlockingPower At(int mhz) const;
  // Whether the measurements show that waiting draws less, or more, at the low clock. Else it is
  // one number.
  bool DependsOnClock(int low_mhz) const;

 private:
  double VarianceOf(const std::array<double, kWaitingUnknowns>& weights) const;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_WAITING_CURVE_H_
