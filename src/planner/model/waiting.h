// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_WAITING_H_
#define PERSEUS_MODEL_WAITING_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"

namespace perseus::model {

// How the ranks of our plans wait where every clock comes at once.
inline Waiting PlannedWaiting(const CostedPipeline& pipeline) {
  return pipeline.waiting_depends_on_clock() ? Waiting::kCheapest : Waiting::kSetClock;
}

// [rank] What its waits of one iteration draw beyond the least that they could
// (CostedPipeline::rank_blocking_power_watts), in joules. Empty: no rank's do. The iteration is one
// of many that are alike: before its first computation a rank has the clock of its last.
std::vector<double> DearerWaitingJoules(const CostedPipeline& pipeline,
                                        const std::vector<CostOption>& options, Waiting waiting,
                                        const Timing& timing);

// Energy of one pipeline over an iteration: computations + blocking power
// while ranks wait (docs/explanation/planning.md), the least that waiting draws. Summed in the
// order of dag.computations. Precondition: one option for every computation.
double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       double iteration_time_seconds);
// The same where ranks wait as a plan says. `timing`: that of Replay().
double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       Waiting waiting, const Timing& timing);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_WAITING_H_
