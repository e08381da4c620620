// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATOR_POLICIES_POLICY_FAMILY_H_
#define PERSEUS_EMULATOR_POLICIES_POLICY_FAMILY_H_

#include <memory>
#include <string_view>
#include <vector>

#include "emulator/policies/table_choice.h"
#include "perseus/plan.h"
#include "perseus/policy.h"
#include "perseus/result.h"

namespace perseus::emulator {

// A policy that has one plan, for any time. `name` has static storage.
std::unique_ptr<Policy> MakeSinglePlanPolicy(std::string_view name, Plan plan);

// A policy that has one plan for each of `choices`. `name` has static storage;
// `planner` must outlive the policy.
Result<std::unique_ptr<Policy>> MakePolicyFamily(std::string_view name, const Planner& planner,
                                                 std::vector<TableChoice> choices);

}  // namespace perseus::emulator

#endif  // PERSEUS_EMULATOR_POLICIES_POLICY_FAMILY_H_
