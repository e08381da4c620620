// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_ENERGY_FIT_H_
#define PERSEUS_MEASURE_ENERGY_FIT_H_

#include <cstddef>
#include <vector>

#include "measure/curve.h"
#include "measure/profile_fit.h"

namespace perseus::measure {

// Watts with their variances, under one prior.
struct FittedWatts {
  struct AtClock {
    std::vector<CurveValue> power;  // [kind]
    std::vector<CurveValue> work;   // [kind]; stretch_fit.h says of what.
  };
  std::vector<AtClock> clocks;  // [record]
  CurveValue waiting;
  double spread = 0;  // Of single computations' power, relative.
};

// The energy half of FitProfile(). `varies`: [kind], its work does.
FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     bool thorough);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_ENERGY_FIT_H_
