// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_POWER_CAP_H_
#define PERSEUS_POLICY_POWER_CAP_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "policy/table_choice.h"

namespace perseus::policy {

inline constexpr int kMostPowerCaps = 256;

// One power limit for all GPUs: every computation runs at the highest clock (if knobs are labels:
// with the fastest option) whose mean power per GPU is within the limit. There is one member for
// each power in the tables that every computation can keep, evenly thinned to kMostPowerCaps.
std::vector<TableChoice> PowerCapMembers(const CostedPipeline& pipeline);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_POWER_CAP_H_
