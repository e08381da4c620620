// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_ENERGY_REPORT_H_
#define PERSEUS_CLI_CLUSTER_ENERGY_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/cluster/report_flags.h"
#include "cli/framework/terminal.h"

namespace perseus::cli {

// Of what a server answers to GET /api/v1/energy. Cost and CO2 are there where `flags` has a price.
// A table with a total, and what is to be known of its figures.
std::string EnergyTable(const nlohmann::ordered_json& energy, const ReportFlags& flags,
                        const Style& style);
// Cells of what was not measured are empty.
std::string EnergyCsv(const nlohmann::ordered_json& energy, const ReportFlags& flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_ENERGY_REPORT_H_
