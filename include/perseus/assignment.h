// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ASSIGNMENT_H_
#define PERSEUS_ASSIGNMENT_H_

// Link perseus::core (pkg-config: perseus-core).

#include <string>
#include <vector>

#include "perseus/export.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "perseus/stream.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One order of microbatches that differ, over the slots of the job's pipelines, and its figures.
// These are of the whole job: all pipelines together, each of which waits for the slowest.
struct AssignmentResult {
  // "as given". "longest first", "shortest first": each pipeline keeps its microbatches, in another
  // order. "balanced", "balanced, longest first": dealt out to the pipelines as evenly as the
  // longest-first rule can. "searched": the best of these, improved by swaps.
  std::string name = {};
  std::vector<int> microbatches = {};  // [pipeline x slots + slot] -> as in the lengths.
  double baseline_seconds = 0;         // All clocks at maximum: an iteration of the job.
  double baseline_joules = 0;
  // With a plan for each pipeline, in the time that this order takes at maximum clocks.
  double planned_joules = 0;
  // The same in the time that the given order takes at maximum clocks, if that is longer.
  double late_joules = 0;
};

struct AssignmentSpec {
  int pipelines = 1;
  int tries = 400;  // Swaps to try. 0 leaves "searched" out.
};

// What another order would save, at maximum clocks and with plans. `lengths` are factors as in
// Work, one for each slot of each pipeline. The first result is the given order. Deterministic.
// Errors: a wrong number of lengths; a stream whose target is not 1.0x; those of StreamPlanner.
Result<std::vector<AssignmentResult>> AnalyseAssignment(const StreamPlanner& stream,
                                                        const std::vector<double>& lengths,
                                                        const AssignmentSpec& spec,
                                                        const ProgressFunction& progress = {});

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ASSIGNMENT_H_
