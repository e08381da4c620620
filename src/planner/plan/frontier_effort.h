// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_FRONTIER_EFFORT_H_
#define PERSEUS_PLAN_FRONTIER_EFFORT_H_

#include <functional>

#include "perseus/frontier.h"
#include "perseus/result.h"

namespace perseus::plan {

// What a frontier takes with slopes rounded to a quantum (0: exact).
using EstimateOf = std::function<FrontierEstimate(double slope_quantum)>;

// `quantum`, doubled while the frontier would take minutes and there is
// something to gain.
double CoarsenUntilQuick(double quantum, const EstimateOf& estimate_of);

// Errors: kOverflow where the frontier would take hours, or more memory than
// most machines have.
Result<void> CheckFrontierEffort(int computations, const FrontierEstimate& estimate);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_FRONTIER_EFFORT_H_
