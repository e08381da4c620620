// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_BOUNDS_SAVING_BOUND_H_
#define PERSEUS_ROBUST_BOUNDS_SAVING_BOUND_H_

#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::robust {

// What no plan saves more than whose mean iteration is at most `slower_percent` longer than the
// `baseline`, that of the same conditions: proven without noise, else an estimate.
RobustBound SavingBound(const Planner& planner, const RobustPlanSpec& spec, double slower_percent,
                        const ReplayedFigures& baseline);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_BOUNDS_SAVING_BOUND_H_
