// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>

#include "perseus/plan.h"

namespace perseus {
namespace {

template <typename KnobOf>
KnobChanges Count(const PipelineDag& dag, const KnobOf& knob_of) {
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

KnobChanges CountKnobChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return Count(dag, [&](int i) { return knobs[i]; });
}

KnobChanges CountKnobChanges(const PipelineDag& dag, const std::vector<CostOption>& options) {
  return Count(dag, [&](int i) { return options[i].knob; });
}

}  // namespace perseus
