// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FLEET_FLEET_FLAGS_H_
#define PERSEUS_CLI_FLEET_FLEET_FLAGS_H_

#include <optional>
#include <string>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

struct FleetFlags {
  std::string action;  // "plan", "curves"
  std::string input;   // The site file.
  std::optional<double> effort;
  ServerFlags server;  // An empty URL: the jobs are those of the site file alone.
  std::string output_directory;
  bool json = false;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FLEET_FLEET_FLAGS_H_
