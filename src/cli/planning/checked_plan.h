// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_CHECKED_PLAN_H_
#define PERSEUS_CLI_PLANNING_CHECKED_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
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

// A plan whose figures are those of its computations.
struct CheckedPlan {
  PlanDocument plan;
  ExplainInput computations;
};

// Reads a plan.json, or that of a folder which `perseus plan -o` wrote, and refuses one that
// contradicts itself.
Result<CheckedPlan> ReadCheckedPlan(const std::string& path);

// The plan.json of a folder; else the path itself.
std::string PlanPathOf(const std::string& path);

// "forward", or "forward+backward" of two that run as one.
std::string TypeText(const ComputationId& id, const std::optional<ComputationId>& fused);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_CHECKED_PLAN_H_
