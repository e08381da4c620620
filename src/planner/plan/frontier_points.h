// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_FRONTIER_POINTS_H_
#define PERSEUS_PLAN_FRONTIER_POINTS_H_

#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/plan.h"

namespace perseus::plan {

// A solved frontier in the units of the user: waiting included, both ends as
// Replay() adds them up, points with names found.
Frontier MakeFrontier(const TimeCostFrontier& solved, const CostedPipeline& pipeline,
                      double slope_quantum, double fastest_seconds, double tstar_seconds);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_FRONTIER_POINTS_H_
