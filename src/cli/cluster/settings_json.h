// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SETTINGS_JSON_H_
#define PERSEUS_CLI_CLUSTER_SETTINGS_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "perseus/job_file.h"

namespace perseus::cli {

// The settings as the server takes them: without those that name files.
nlohmann::ordered_json SettingsJson(const JobFile& settings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SETTINGS_JSON_H_
