// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_TREE_FILLING_H_
#define PERSEUS_FLEET_TREE_FILLING_H_

#include <vector>

#include "fleet/site_state.h"

namespace perseus::fleet {

// The order in which jobs get power.
enum class FillOrder {
  kValue,  // Segment by segment, the most weighted speed for a watt first.
  kRatio   // All jobs alike, by speed / weight.
};

struct Filling {
  Throughputs x = {};
  std::vector<double> prices = {};  // [node]
};

// Water-filling of a tree from its leaves up. Each node has a level at which its limit is reached
// by what is below it; a job stops at the lowest level of the nodes above it. Exact. The least of
// all jobs keeps all limits, and IsTree() is true.
Filling FillTree(const State& state, const Limits& limits, FillOrder order);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_TREE_FILLING_H_
