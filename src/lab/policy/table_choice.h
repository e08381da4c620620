// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_TABLE_CHOICE_H_
#define PERSEUS_POLICY_TABLE_CHOICE_H_

#include <optional>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::policy {

// For each cost table of a pipeline, an index into its all_options: a plan in which all
// computations with the same table run with the same option.
using TableChoice = std::vector<int>;

// The option that a GPU runs if it is set to `knob`: that knob or, if the table lacks it, the
// nearest lower clock; nullopt: there is none. Labels have no order, so only the knob itself can
// match.
std::optional<int> OptionAt(const CostedPipeline& pipeline, const CostTable& table, int knob);

// [table]: the rank that runs it.
std::vector<int> RanksOfTables(const CostedPipeline& pipeline);

// [table]: how many computations of an iteration it is for.
std::vector<int> UsesOfTables(const CostedPipeline& pipeline);

// One option for each computation.
std::vector<CostOption> OptionsOf(const CostedPipeline& pipeline, const TableChoice& choice);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_TABLE_CHOICE_H_
