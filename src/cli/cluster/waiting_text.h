// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_WAITING_TEXT_H_
#define PERSEUS_CLI_CLUSTER_WAITING_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus::cli {

// What GPUs that wait draw, by what a job's or a profile's sweep found, and whether it is taken as
// constant over the clocks. Empty: no rank measured it.
std::string WaitingText(const nlohmann::ordered_json& profiling);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_WAITING_TEXT_H_
