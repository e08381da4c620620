// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SWEEP_TEXT_H_
#define PERSEUS_CLI_CLUSTER_SWEEP_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus::cli {

// What a job's or a profile's sweep cost, against the highest clock; empty where nobody says.
std::string SweepText(const nlohmann::ordered_json& sweep);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SWEEP_TEXT_H_
