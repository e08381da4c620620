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

// What was measured at one clock.
struct ClockRecord {
  int mhz = 0;
  bool throttled = false;
  std::optional<double> temperature_celsius;
  StretchFit stretches;
  std::vector<TimeSummary> times;  // Of each kind; no samples: it did not run.

  // Not measured: its rows are what the curves say, with `samples` 0.
  static ClockRecord Predicted(int mhz) {
    ClockRecord record;
    record.mhz = mhz;
    record.predicted = true;
    return record;
  }
  bool predicted = false;

  // Whether it has a point on a curve of this kind; so has a prediction of all kinds.
  bool Has(std::size_t kind) const {
    return predicted || (kind < times.size() && times[kind].samples > 0);
  }
};

struct ProfileFit {
  std::vector<Estimate> rows;  // By record, then by kind.
  // None: too little waiting was seen to tell.
  std::optional<BlockingPower> blocking;
  // How far times of single clocks lie off the smooth curve of their kind, measuring aside:
  // a relative standard deviation, of the kind that jumps most.
  double jump = 0;
};

// Times, energies and blocking power of all clocks in one fit: blocking power is
// one number, and kinds are curves over the clocks (curve.h). Standard errors are
// those of the posterior. What stretches cannot tell apart (two kinds that always run in
// the same mix) shares the mean power of both, with a standard error that says so.
//
// `thorough`: finds out how smooth the curves are, which takes a dozen times as long
// as the fit; else a middle value is taken. Cost: cubic in kinds x clocks up to 512,
// beyond that linear.
ProfileFit FitProfile(const std::vector<Kind>& kinds, const std::vector<ClockRecord>& records,
                      bool thorough);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_PROFILE_FIT_H_
