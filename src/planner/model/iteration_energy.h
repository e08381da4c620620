// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_ITERATION_ENERGY_H_
#define PERSEUS_MODEL_ITERATION_ENERGY_H_

#include <optional>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"

namespace perseus::model {

// [knob] The option of a table that counts at a clock, which may be one that the table lacks: the
// nearest, the lower clock of two equally near; none where knobs are labels.
std::vector<const CostOption*> NearestOptions(const CostedPipeline& pipeline,
                                              const CostTable& table);

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

// An iteration of one pipeline at default clocks.
struct DefaultClockIteration {
  double seconds = 0;
  double joules = 0;  // Waiting included, at what it draws at the highest clock.
};

// None: the profile does not say what all computations cost at default clocks.
std::optional<DefaultClockIteration> DefaultClockIterationOf(const CostedPipeline& pipeline);

// How a plan compares with it.
DefaultClockFigures AgainstDefaultClocks(const DefaultClockIteration& iteration,
                                         const PlanFigures& plan);

// If an iteration at default clocks is clearly faster than one at the highest clock, a plan without
// slowdown makes training slower; that is the note. Clearly: by more than 0.5 %, than three
// standard errors of the profile's times, and than 0.1 ms a computation, which a host's times may
// err by. Another note if rows are missing for a comparison. `source`: of the profile.
std::optional<Note> DefaultClockNote(const CostedPipeline& pipeline, const std::string& source);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_ITERATION_ENERGY_H_
