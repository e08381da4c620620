// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_
#define PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/server_client.h"
#include "cli/framework/terminal.h"
#include "perseus/fleet.h"
#include "perseus/note.h"
#include "perseus/result.h"
#include "site/site.h"

namespace perseus::cli {

inline constexpr double kWattsPerKilowatt = 1000;

// How a site says that what is implausible is meant.
inline constexpr std::string_view kAcceptingInJobFile =
    "set accept_implausible = true in its job file";

// What `perseus fleet plan` says.
struct FleetSummary {
  site::Site site;
  site::FleetPlan plan;
  std::vector<Note> notes;
  std::string output_directory;  // Empty: nothing is written.
};

// What keeps a job from being faster, as far as its plan is concerned.
enum class HeldBy : std::uint8_t {
  kNothing,    // It is as fast as its clocks allow.
  kStraggler,  // It is as fast as its late pipeline.
  kOwner,      // It is as slow as its owner accepts, so that others get the power.
  kLimit       // A limit of power.
};
struct Holder {
  HeldBy by = HeldBy::kNothing;
  std::size_t node = 0;  // Of kLimit: the nearest one that binds.
};
Holder HolderOf(const site::Site& site, const FleetAnswer& answer, std::size_t job);

// What the whole site would draw at the meter with all clocks at maximum.
double FullSpeedWatts(const site::Site& site);

std::string FormatFleet(const FleetSummary& summary, const Style& style);
std::string FormatFleetJson(const FleetSummary& summary);

// Where no division fits: one sentence for the worst limit, and as JSON that sentence and all
// limits.
Error ShortageError(const site::Site& site, const std::vector<PowerShortage>& shortages);
std::string FormatShortagesJson(const site::Site& site, const std::vector<PowerShortage>& shortages,
                                const std::string& sentence);

// Adds the jobs of a server to those of the file, and a model for each of them: [job], null for
// jobs of the file that have a source of their own.
Result<std::vector<site::SharedModel>> AddServerJobs(ServerClient* server, site::SiteFile* file,
                                                     std::vector<Note>* notes);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FLEET_FLEET_SUMMARY_H_
