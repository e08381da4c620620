// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SUPPORT_SUPPORT_BUNDLE_FLAGS_H_
#define PERSEUS_CLI_SUPPORT_SUPPORT_BUNDLE_FLAGS_H_

#include <string>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

// What was given to `support-bundle`.
struct SupportBundleFlags {
  std::string output_file;
  ServerFlags server;
  std::string job;              // Empty: one that has trouble, else the newest.
  std::string driver = "nvml";  // As device::OpenDriver takes it.
  std::string agent_socket;     // Empty: the agent's own default.
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SUPPORT_SUPPORT_BUNDLE_FLAGS_H_
