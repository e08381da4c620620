// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_PROFILE_FIT_H_
#define PERSEUS_MEASURE_PROFILE_FIT_H_

#include <optional>
#include <vector>

#include "measure/kind.h"
#include "measure/stretch_fit.h"
#include "measure/time_fit.h"

namespace perseus::measure {

// All measurements of one visit to a clock.
struct ClockRecord {
  int mhz = 0;       // Or kUnlockedMhz.
  double visit = 0;  // Its number, in the order of time.
  bool throttled = false;
  std::optional<double> temperature_celsius;
  StretchFit stretches;
  std::vector<TimeSummary> times;  // Of each kind; no samples: it did not run.

  // A clock that was not measured. Its rows are read from the curves, with `samples` 0.
  static ClockRecord Predicted(int mhz) {
    ClockRecord record;
    record.mhz = mhz;
    record.predicted = true;
    return record;
  }
  bool predicted = false;

  // Whether it has a point on the curve of this kind. A predicted clock has one for all kinds.
  bool Has(std::size_t kind) const {
    return predicted || (kind < times.size() && times[kind].samples > 0);
  }
};

struct ProfileFit {
  std::vector<Estimate> rows;  // By clock, then by kind.
  // None: there was too little waiting to estimate it.
  std::optional<BlockingPower> blocking;
  // By clock that the card kept, highest first. Empty: the measurements do not show that it depends
  // on the clock, so `blocking` is taken as constant. Else `blocking` is that at the highest clock.
  std::vector<WaitingRow> waiting;
  // Relative standard deviation by which times at single clocks differ from the smooth curve,
  // without measurement errors. Maximum over the kinds.
  double jump = 0;
};

// Estimates times, energies and blocking power of all clocks in one fit. Each kind is a curve over
// the clocks (curve.h), on which what was measured with no clock set is not. Blocking power is one
// number, or, in a thorough fit and where it shows to depend on the clock, a curve of its own
// (waiting_curve.h); with no clock set it is taken to be that at the highest one. Several records
// may be of one clock. Standard errors are those of the posterior. If two kinds always run in the
// same mix, the fit cannot separate their power: both get the mean, with a large standard error.
//
// `thorough`: estimates how smooth the curves are and how much the card drifts, which takes about a
// hundred times as long. Else a middle value is used, and no drift. Cost: cubic in kinds x clocks
// up to 200, linear beyond.
ProfileFit FitProfile(const std::vector<Kind>& kinds, const std::vector<ClockRecord>& records,
                      bool thorough);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_PROFILE_FIT_H_
