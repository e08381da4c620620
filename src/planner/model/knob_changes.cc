// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstddef>

#include "perseus/plan.h"

namespace perseus {
inline namespace v0 {
namespace {

template <typename KnobOf>
Result<KnobChanges> Count(const PipelineDag& dag, std::size_t knobs, const KnobOf& knob_of) {
  if (knobs != dag.computations.size()) {
    return InvalidInput(
        fmt::format("{} knobs are given for {} computations", knobs, dag.computations.size()));
  }
  KnobChanges changes;
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (knob_of(order[k]) != knob_of(order[k - 1])) ++changes.within;
    }
    if (!order.empty() && knob_of(order.front()) != knob_of(order.back())) ++changes.back;
  }
  return changes;
}

}  // namespace

Result<KnobChanges> CountKnobChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return Count(dag, knobs.size(), [&](int i) { return knobs[i]; });
}

Result<KnobChanges> CountKnobChanges(const PipelineDag& dag,
                                     const std::vector<CostOption>& options) {
  return Count(dag, options.size(), [&](int i) { return options[i].knob; });
}

}  // namespace v0
}  // namespace perseus
