// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_TABLE_CHOICE_H_
#define PERSEUS_POLICY_TABLE_CHOICE_H_

#include <optional>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::policy {

// For each table of a pipeline, an index into its all_options: a plan in which
// computations of one kind all run alike.
using TableChoice = std::vector<int>;

// Which option a GPU runs that is told to go at `knob`: that one, or the
// nearest lower clock where the table lacks it; nullopt where there is none.
// Labels have no order: the knob itself or none.
std::optional<int> OptionAt(const CostedPipeline& pipeline, const CostTable& table, int knob);

// [table]: the rank that runs it.
std::vector<int> RanksOfTables(const CostedPipeline& pipeline);

// [table]: how many computations of an iteration it is for.
std::vector<int> UsesOfTables(const CostedPipeline& pipeline);

// One option for each computation.
std::vector<CostOption> OptionsOf(const CostedPipeline& pipeline, const TableChoice& choice);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_TABLE_CHOICE_H_
