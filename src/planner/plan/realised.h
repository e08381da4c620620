// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_REALISED_H_
#define PERSEUS_PLAN_REALISED_H_

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::plan {

// Fills in the figures of a plan from its options, which are the pipeline's: all but the requested
// time and the bound of shared knobs. `bound` is the lower bound; the saving is against
// `baseline_joules`, and 0 where that is.
void FillFigures(const CostedPipeline& pipeline, const Frontier& bound, double baseline_joules,
                 Plan* plan);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_REALISED_H_
