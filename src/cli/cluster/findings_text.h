// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_FINDINGS_TEXT_H_
#define PERSEUS_CLI_CLUSTER_FINDINGS_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus::cli {

// What a server found by what ranks report: of GET .../detection and .../savings.
std::string DetectionText(const nlohmann::ordered_json& detection);
std::string SavingsText(const nlohmann::ordered_json& savings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_FINDINGS_TEXT_H_
