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
    std::vector<CurveValue> work;   // [kind]; see the unknowns in stretch_fit.h.
  };
  std::vector<AtClock> clocks;  // [record]
  CurveValue waiting;
  double spread = 0;  // Relative spread of the power of single computations.
};

// The energy part of FitProfile(). `varies`: [kind], whether its work varies.
FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     bool thorough);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_ENERGY_FIT_H_
