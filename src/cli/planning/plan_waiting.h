// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_WAITING_H_
#define PERSEUS_CLI_PLANNING_PLAN_WAITING_H_

#include <string>
#include <vector>

#include "perseus/explain.h"
#include "perseus/pipeline.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"

// Plans whose ranks draw less while they wait at a lower clock.
namespace perseus::cli {

// Fills in what waiting draws in the baseline and in the plan beyond the least, from what the file
// at `path` says of its ranks. `baseline_knobs`: [computation]; `before`, `after`: both replays.
Result<void> AddDearerWaiting(const PlanDocument& plan, const PipelineDag& dag,
                              const std::vector<const Knob*>& baseline_knobs, const Timing& before,
                              const Timing& after, const std::string& path, ExplainInput* input);

// At which clocks ranks wait, as a sentence; empty where that makes no difference.
std::string WaitingClocksText(const PlanDocument& plan);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_WAITING_H_
