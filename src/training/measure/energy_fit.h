// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_ENERGY_FIT_H_
#define PERSEUS_MEASURE_ENERGY_FIT_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "measure/curve.h"
#include "measure/profile_fit.h"
#include "measure/waiting_curve.h"

namespace perseus::measure {

// What a value is asked for: the power of a kind at a clock, whatever the visits to it were like.
struct Target {
  int mhz = 0;
  CurvePoint point;  // Its curve is the kind.
};

struct PriorsTried {
  bool several = false;
  bool drifts = false;            // Among several.
  bool waiting_by_clock = false;  // Else the power of waiting is one number.
};

struct FittedWatts {
  CurveValues power;                      // [target]
  std::vector<std::vector<double>> work;  // [record][kind]; see the unknowns in stretch_fit.h.
  BlockingPower waiting;                  // At the highest clock.
  std::optional<WaitingCurve> waiting_curve;
  double spread = 0;  // Relative spread of the power of single computations.
};

// The energy part of FitProfile(). `varies`: [kind], whether its work varies. `targets`: in the
// order of `records`.
FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     const std::vector<Target>& targets, const PriorsTried& tried);

// The point of a kind's curve that a record measured.
CurvePoint PointOf(const ClockRecord& record, std::size_t kind, int highest_mhz);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_ENERGY_FIT_H_
