// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_CHECK_H_
#define PERSEUS_CLI_PLANNING_PLAN_CHECK_H_

#include <string>
#include <vector>

#include "perseus/explain.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

namespace perseus::cli {

// Whether a schedule with the name of one of ours is that one; other names are those of files.
Result<void> CheckScheduleName(const PlanDocument& plan, const Schedule& schedule,
                               const std::string& path);

// What the plan says of itself, against what its own computations make: a file may have been
// edited since it was written. `start_seconds` as replayed, in the order of ranks and computations.
// Figures under conditions (`expected`) cannot be made from the file: late clocks need the costs of
// clocks that the plan does not use.
Result<void> CheckOwnFigures(const PlanDocument& plan, const ExplainInput& input,
                             const std::vector<std::vector<double>>& start_seconds,
                             const std::string& path);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_CHECK_H_
