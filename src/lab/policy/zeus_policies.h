// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_ZEUS_POLICIES_H_
#define PERSEUS_POLICY_ZEUS_POLICIES_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "policy/table_choice.h"

// The two baselines of Chung et al., SOSP'24, section 6.1, that go back to Zeus
// (You et al., NSDI'23). docs/explanation/policies.md says how they are meant here.
namespace perseus::policy {

// One member for each knob that every computation can be given.
std::vector<TableChoice> ZeusGlobalMembers(const CostedPipeline& pipeline);

// One member for each knob that every rank can be given: the longest forward of
// a rank at that knob is the time that all get, and each rank takes the knob of
// least effective energy with which its forward keeps to it.
std::vector<TableChoice> ZeusPerStageMembers(const CostedPipeline& pipeline);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_ZEUS_POLICIES_H_
