// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FLEET_FLEET_FLAGS_H_
#define PERSEUS_CLI_FLEET_FLEET_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

struct FleetFlags {
  std::string action;  // "plan", "emulate"
  std::string input;   // The site file.
  std::optional<double> effort;
  double days = 7;  // emulate
  std::uint64_t seed = 0;
  std::optional<int> seeds;
  ServerFlags server;  // An empty URL: the jobs are those of the site file alone.
  std::string output_directory;
  bool json = false;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FLEET_FLEET_FLAGS_H_
