// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_MEASURED_TIMES_H_
#define PERSEUS_SERVER_PLANNING_MEASURED_TIMES_H_

#include <cstdint>
#include <vector>

#include "perseus/computation.h"
#include "perseus/costed_pipeline.h"
#include "perseus/profile.h"

// A profile says how long computations take. It comes from other GPUs, another day, or few
// repetitions. Training shows how long they take here, at the clocks of the plan. Plans are late if
// the two differ between stages, and a search prefers the clocks whose errors flatter.
namespace perseus::server {

// How long computations of a kind take at a clock: the mean over all ranks of the stage.
struct MeasuredTime {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;
  double seconds = 0;
  double error_seconds = 0;  // Standard error.
  std::int64_t computations = 0;

  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

// The least and the greatest factor by which the times of a stage were corrected.
struct TimeCorrection {
  int stages = 0;  // 0: nothing was corrected.
  double least = 1;
  double most = 1;
};

// Corrects a profile by the times in training. `profiled` is the schedule's iteration by this
// profile, so it says how long a part of a backward should take. Each stage has a factor for all of
// its computations, as its GPUs are faster or slower than those of the profile; a stage that was
// not measured has the factor common to the others. Where the profile states standard errors
// (OptionErrors), an option that training has run also takes the mean of both, by their errors.
// Options at default clocks take the factor of their stage, too. Energies keep their power. A time
// that is more than kMostOff off corrects nothing: there is another cause, which "drift" tells. Nor
// does one of a kind whose work differs between microbatches.
TimeCorrection CorrectTimes(const CostedPipeline& profiled, const std::vector<MeasuredTime>& times,
                            Profile* profile);
inline constexpr double kMostOff = 0.05;

// Whether training differs from the times of the present plans, so that others would be better: a
// stage by more than 0.2 % and three standard errors, beside the factor common to all (heat makes
// all slower, and changes no plan).
bool TimesHaveMoved(const CostedPipeline& planned, const std::vector<MeasuredTime>& times);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_MEASURED_TIMES_H_
