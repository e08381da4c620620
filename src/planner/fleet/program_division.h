// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_PROGRAM_DIVISION_H_
#define PERSEUS_FLEET_PROGRAM_DIVISION_H_

#include "fleet/site_state.h"
#include "fleet/tree_filling.h"

namespace perseus::fleet {

// Divisions that need a linear program: of jobs with shares in several nodes, and among tenants
// where limits hold some jobs but not others. The least of all jobs keeps all limits.
Result<Filling> ThroughputProgram(const State& state, const Limits& limits);
Result<Filling> TenantsProgram(const State& state, const Limits& limits);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_PROGRAM_DIVISION_H_
