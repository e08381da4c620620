// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_BENCH_SWEEP_LOSSES_H_
#define PERSEUS_BENCH_SWEEP_LOSSES_H_

#include <string>
#include <vector>

namespace perseus::measure {

// What plans from sweeps of a table lose against the plan from the table itself, over many seeds:
//
//   --profile FILE.csv     the truth
//   --blocking-power W     of a GPU that waits, in watts
//   --seeds N              sweeps of each row (50)
//   --order NAME           full, coarse or shuffled; without: each
//   --disturbance NAME     part of the name of a disturbance (tests/measure/sweep_coverage.h);
//                          all: each; without: none
//   --microbatches N       of the pipeline (12)
//   --scale X              of all times and energies of the table (1)
//   --waiting NAME         number: plans from one number of waiting, though sweeps found it by
//   clock
//   --waiting-share X      of the watts of waiting, that falls with the square of the clock (0)
//
//   --time-noise X         of a computation, a share (0.02)
//   --tails NAME           heavy: of this noise, in all rows
//   --heat X               the share by which times and powers rise in the end, in all rows
//   --heat-seconds X       the time constant of that (120)
//
// Prints a row for each disturbance and order, and by how much the profile's rows are off in the
// mean, with the standard error of that over the sweeps (tests/measure/sweep_coverage.h); then
// "worst loss X": how many points of saving the worst of all sweeps cost. Returns the exit code.
int SweepLosses(const std::vector<std::string>& arguments);

}  // namespace perseus::measure

#endif  // PERSEUS_BENCH_SWEEP_LOSSES_H_
