// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLAN_PLANNER_TESTING_H_
#define PERSEUS_TESTS_PLAN_PLANNER_TESTING_H_

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"

namespace perseus::plan_testing {

inline constexpr double kLittle = 0.01;  // Effort for tests that only want a valid plan.

// The planner of a pipeline that can be planned.
Planner Plans(CostedPipeline pipeline, const PlannerOptions& options = {});

// Expects every figure of a plan to be what it is when it is computed again.
void CheckHonest(const Planner& planner, const Plan& plan);

}  // namespace perseus::plan_testing

#endif  // PERSEUS_TESTS_PLAN_PLANNER_TESTING_H_
