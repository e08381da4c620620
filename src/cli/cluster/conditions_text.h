// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_CONDITIONS_TEXT_H_
#define PERSEUS_CLI_CLUSTER_CONDITIONS_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus::cli {

// What a job measured of noise, latency and transfers, and what its plans are made for; empty where
// that is nothing.
std::string ConditionsText(const nlohmann::ordered_json& conditions);

// What jobs measured of noise and latency with a profile; empty where none did.
std::string KeptConditionsText(const nlohmann::ordered_json& kept);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_CONDITIONS_TEXT_H_
