// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/table_choice.h"

#include <algorithm>

namespace perseus::policy {

std::optional<int> OptionAt(const CostedPipeline& pipeline, const CostTable& table, int knob) {
  // Clocks descend with the index of their knob.
  const auto found =
      std::lower_bound(table.all_options.begin(), table.all_options.end(), knob,
                       [](const CostOption& option, int k) { return option.knob < k; });
  if (found == table.all_options.end()) return std::nullopt;
  if (found->knob != knob && !pipeline.knobs_are_numbers) return std::nullopt;
  return static_cast<int>(found - table.all_options.begin());
}

std::vector<int> RanksOfTables(const CostedPipeline& pipeline) {
  std::vector<int> ranks(pipeline.tables.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    ranks[pipeline.table_of[i]] = pipeline.dag.computations[i].rank;
  }
  return ranks;
}

std::vector<int> UsesOfTables(const CostedPipeline& pipeline) {
  std::vector<int> uses(pipeline.tables.size());
  for (const int table : pipeline.table_of) ++uses[table];
  return uses;
}

std::vector<CostOption> OptionsOf(const CostedPipeline& pipeline, const TableChoice& choice) {
  std::vector<CostOption> options;
  options.reserve(pipeline.table_of.size());
  for (const int table : pipeline.table_of) {
    options.push_back(pipeline.tables[table].all_options[choice[table]]);
  }
  return options;
}

}  // namespace perseus::policy
