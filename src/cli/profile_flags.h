// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PROFILE_FLAGS_H_
#define PERSEUS_CLI_PROFILE_FLAGS_H_

#include <string>
#include <vector>

#include "cli/server_flags.h"

namespace perseus::cli {

// What was given to `profile`, the client of a server's profile library.
struct ProfileFlags {
  // The action and what it is about: "compare", "p-1f...", "profile.csv".
  std::vector<std::string> words = std::vector<std::string>(3);
  ServerFlags server;
  bool json = false;
  std::string output_file;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PROFILE_FLAGS_H_
