// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_PLAN_MOVES_H_
#define PERSEUS_FLEET_PLAN_MOVES_H_

#include <cstddef>
#include <vector>

#include "fleet/plan_walk.h"

namespace perseus::fleet {

// Real plans for weighted throughput: the steps of all jobs in the order of their cost, up to some
// place, then one job moved to any other of its options. The best of these that keeps all limits.
// The limit of node 0 decides only which of them do, so more watts there never lower the answer.
std::vector<std::size_t> ThroughputChoices(const State& state, const Limits& limits,
                                           const OptionTable& options);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_PLAN_MOVES_H_
