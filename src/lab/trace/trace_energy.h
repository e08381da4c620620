// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_ENERGY_H_
#define PERSEUS_SRC_TRACE_TRACE_ENERGY_H_

#include <string>
#include <vector>

#include "perseus/effort.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "trace/links.h"
#include "trace/recording.h"
#include "trace/relative_costs.h"

namespace perseus::trace {

struct TraceEnergySpec {
  RelativeCostSpec costs;
  double effort = kTraceEffort;  // Of each plan.
  int detector_steps = 12;       // Recorded steps that a detector looks at.
  double detector_threshold = 0.05;
  ProgressFunction progress;
};

// What the job would have used, a step in the mean.
struct TracePlanOutcome {
  std::string key;   // For programs: "static".
  std::string name;  // For people.
  double step_seconds = 0;
  double energy_joules = 0;
  double saving_percent = 0;  // Against maximum clocks.
  double slowdown_percent = 0;
  std::vector<double> step_joules;        // [step index]
  std::vector<double> step_seconds_each;  // [step index]
};

struct TraceStepEnergy {
  int step = 0;
  double intrinsic_joules = 0;
  double extrinsic_joules = 0;
};

// Energies of the whole job, a step in the mean; as docs/explanation/emulation.md has them.
struct TraceEnergy {
  double step_seconds = 0;   // Replayed.
  double energy_joules = 0;  // At maximum clocks: useful + intrinsic + extrinsic + blocking.
  double useful_joules = 0;
  double intrinsic_joules = 0;
  double extrinsic_joules = 0;
  double blocking_joules = 0;
  std::vector<TracePlanOutcome> plans;
  std::vector<TraceStepEnergy> steps;
  double length_error = 0;      // LengthFit::error
  int stragglers_answered = 0;  // Steps in which the detector knew of one.
};

// Costs every computation, and makes the plans: one for the mean lengths; one for each pipeline
// and step, without and with the others in view; one that answers stragglers. Each is replayed on
// the recorded lengths. Errors: those of CostRecorded and of the planner.
Result<TraceEnergy> ComputeTraceEnergy(const Recording& recording, const Links& links,
                                       const TraceEnergySpec& spec);

// Said in place of the plans' rows where all of them would read 0.00 %, but for that of maximum
// clocks, which is the first; empty where a plan changes anything.
std::string NoPlanSaves(const TraceEnergy& energy);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_ENERGY_H_
