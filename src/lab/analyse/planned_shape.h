// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSE_PLANNED_SHAPE_H_
#define PERSEUS_ANALYSE_PLANNED_SHAPE_H_

#include "perseus/analysis.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::analyse {

// What an analysis says of one shape.
struct PlannedShape {
  double baseline_seconds = 0;
  double baseline_joules = 0;
  double bubble_percent = 0;  // Of the baseline.
  Plan plan;                  // At the baseline's time.
};

// From a profile to a plan. Precondition: job.profile is not null.
Result<PlannedShape> PlanShape(const JobShape& job, double effort);

// What analyses expect of their arguments.
Result<void> CheckAnalysis(const JobShape& job, double effort);

}  // namespace perseus::analyse

#endif  // PERSEUS_ANALYSE_PLANNED_SHAPE_H_
