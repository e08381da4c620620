// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FLEET_FLEET_ACTIONS_H_
#define PERSEUS_CLI_FLEET_FLEET_ACTIONS_H_

#include "cli/fleet/fleet_flags.h"
#include "cli/framework/outputs.h"
#include "cli/framework/terminal.h"
#include "perseus/result.h"

namespace perseus::cli {

Result<Printout> RunFleetPlan(const FleetFlags& flags, const Style& style);
Result<Printout> RunFleetEmulate(const FleetFlags& flags, const Style& style);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FLEET_FLEET_ACTIONS_H_
