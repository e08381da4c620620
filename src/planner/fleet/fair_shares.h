// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_FAIR_SHARES_H_
#define PERSEUS_FLEET_FAIR_SHARES_H_

#include "fleet/site_state.h"
#include "fleet/tree_filling.h"

namespace perseus::fleet {

// Max-min fairness where jobs have shares in several nodes: all rise together; those that touch a
// limit which is reached stay, the others go on.
Filling FillShares(const State& state, const Limits& limits);

// Max-min fairness among tenants under one limit, which holds all jobs.
Filling FillTenants(const State& state, double limit);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_FAIR_SHARES_H_
