// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_SHORTAGES_H_
#define PERSEUS_FLEET_SHORTAGES_H_

#include <optional>
#include <vector>

#include "fleet/site_state.h"

namespace perseus::fleet {

// Limits that do not hold what these watts [job] come to.
std::vector<PowerShortage> ShortagesOf(const State& state, const Limits& limits,
                                       const std::vector<double>& least_watts);

// The first of them as an error (kInfeasible).
std::optional<Error> FirstShortage(const State& state, const Limits& limits,
                                   const std::vector<double>& least_watts);

// What the jobs draw at least: anywhere on their curves, or following plans.
std::vector<double> LeastOfCurves(const State& state);
std::vector<double> LeastOfPlans(const State& state);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_SHORTAGES_H_
