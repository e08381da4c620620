// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_PROFILE_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_PROFILE_FLAGS_H_

#include <string>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

// What was given to `profile`, the client of a server's profile library.
struct ProfileFlags {
  std::string action;  // "compare"
  std::string profile;
  std::string other;  // compare
  ServerFlags server;
  bool json = false;
  bool names = false;  // list: the ids alone, for completions.
  std::string output_file;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_PROFILE_FLAGS_H_
