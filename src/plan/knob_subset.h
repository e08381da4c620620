// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_KNOB_SUBSET_H_
#define PERSEUS_PLAN_KNOB_SUBSET_H_

#include "perseus/costed_pipeline.h"
#include "perseus/result.h"
#include "plan/time_cost_problem.h"

namespace perseus::plan {

// The pipeline with at most `max_knobs` distinct knobs left: those with which
// it costs least at the optimal prices of time for this deadline. One at a
// time the knob is dropped that is missed least and without which the deadline
// can still be met. Errors: kInfeasible.
Result<CostedPipeline> KeepFewKnobs(const CostedPipeline& pipeline, const Guard& guard,
                                    double seconds, int max_knobs);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_KNOB_SUBSET_H_
