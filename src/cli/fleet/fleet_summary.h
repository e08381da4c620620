// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_
#define PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "fleet/site.h"
#include "perseus/fleet.h"
#include "perseus/note.h"
#include "perseus/result.h"

namespace perseus::cli {

// The answer of `perseus fleet plan`.
struct FleetSummary {
  fleet::Site site;
  fleet::FleetPlan plan;
  std::vector<Note> notes;
  std::string output_directory;  // Empty: nothing is written.
};

std::string FormatFleet(const FleetSummary& summary, const Style& style);
std::string FormatFleetJson(const FleetSummary& summary);

// The error if no division fits: one sentence for the worst limit, and as JSON that sentence and
// all limits.
Error ShortageError(const fleet::Site& site, const std::vector<PowerShortage>& shortages);
std::string FormatShortagesJson(const fleet::Site& site,
                                const std::vector<PowerShortage>& shortages,
                                const std::string& sentence);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_
