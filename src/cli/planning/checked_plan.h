// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_CHECKED_PLAN_H_
#define PERSEUS_CLI_PLANNING_CHECKED_PLAN_H_

#include <optional>
#include <string>

#include "perseus/computation.h"
#include "perseus/explain.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"

namespace perseus::cli {

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
