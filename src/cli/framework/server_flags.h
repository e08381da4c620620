// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_SERVER_FLAGS_H_
#define PERSEUS_CLI_FRAMEWORK_SERVER_FLAGS_H_

#include <string>

namespace perseus::cli {

// Which server, and as whom; what is empty comes from the environment.
struct ServerFlags {
  std::string server;      // URL; or PERSEUS_SERVER, or this machine.
  std::string token_file;  // Holds one token; or PERSEUS_TOKEN_FILE, or none.
  std::string ca_file;     // To trust; or PERSEUS_CA_FILE, or the system's.
};

// Fills empty flags from the environment.
ServerFlags WithEnvironment(ServerFlags flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_SERVER_FLAGS_H_
