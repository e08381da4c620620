// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_POWER_CAP_H_
#define PERSEUS_POLICY_POWER_CAP_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "policy/table_choice.h"

namespace perseus::policy {

inline constexpr int kMostPowerCaps = 256;

// One power limit for all GPUs: every computation runs its highest clock (its
// fastest option, where knobs are labels) whose mean power per GPU is within.
// One member for each power of the tables that every computation can keep to,
// or for kMostPowerCaps of them, evenly thinned.
std::vector<TableChoice> PowerCapMembers(const CostedPipeline& pipeline);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_POWER_CAP_H_
