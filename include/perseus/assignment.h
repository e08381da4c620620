// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ASSIGNMENT_H_
#define PERSEUS_ASSIGNMENT_H_

#include <string>
#include <vector>

#include "perseus/export.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "perseus/stream.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// One way to give microbatches that differ to the slots of the job's pipelines,
// and what comes of it: figures of the whole job, all pipelines together, which wait
// for the slowest of them.
struct AssignmentResult {
  // "as given"; "longest first", "shortest first" (in each pipeline as given);
  // "balanced" (over pipelines, as even as longest-first makes them), "balanced, longest first";
  // "searched" (swaps, from the best of these).
  std::string name;
  std::vector<int> microbatches;  // [pipeline x slots + slot] -> as in the lengths.
  double baseline_seconds = 0;    // All clocks at maximum: an iteration of the job.
  double baseline_joules = 0;
  // With a plan for each pipeline that knows the lengths of all:
  double planned_joules = 0;  // in as long as this assignment takes at maximum clocks,
  double late_joules = 0;     // or in as long as the one given does, where that is longer.
};

struct AssignmentSpec {
  int pipelines = 1;
  int tries = 400;  // Swaps that are tried; 0: not searched.
};

// What reordering alone would save: at maximum clocks, and on top of plans. `lengths` are factors
// as of Work, one for each slot of each pipeline. The first result is as given. Deterministic.
// Errors: a wrong number of lengths, a stream with another target than 1.0x (pipelines that
// wait for each other have one time), those of StreamPlanner.
Result<std::vector<AssignmentResult>> AnalyseAssignment(const StreamPlanner& stream,
                                                        const std::vector<double>& lengths,
                                                        const AssignmentSpec& spec,
                                                        const ProgressFunction& progress = {});

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ASSIGNMENT_H_
