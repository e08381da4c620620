// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_DOCTOR_FLAGS_H_
#define PERSEUS_CLI_NODE_DOCTOR_FLAGS_H_

#include <string>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

struct DoctorFlags {
  std::string driver = "nvml";  // As device::OpenDriver takes it.
  std::string agent_socket;     // Empty: the agent's own default.
  double seconds = 2;           // How long energy counters are read.
  bool set_clocks = false;
  double call_interval_seconds = 0.050;  // Between calls while their cost is measured.
  std::string output_file;               // For the conditions that were measured; empty: none.
  ServerFlags server;                    // With a URL, it is looked at in place of this node.
  bool json = false;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_DOCTOR_FLAGS_H_
