// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_POLICY_FAMILY_H_
#define PERSEUS_POLICY_POLICY_FAMILY_H_

#include <memory>
#include <string_view>
#include <vector>

#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/result.h"
#include "policy/table_choice.h"

namespace perseus::policy {

// A policy that has one plan for each of `choices`. `name` has static storage;
// `planner` must outlive the policy.
Result<std::unique_ptr<Policy>> MakePolicyFamily(std::string_view name, const Planner& planner,
                                                 std::vector<TableChoice> choices);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_POLICY_FAMILY_H_
