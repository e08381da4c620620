// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/commands.h"
#include "cli/fleet/fleet_actions.h"

namespace perseus::cli {

Result<Printout> RunFleet(const FleetFlags& flags, const Style& style) {
  return flags.action == "emulate" ? RunFleetEmulate(flags, style) : RunFleetPlan(flags, style);
}

}  // namespace perseus::cli
