// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_AGENT_FLAGS_H_
#define PERSEUS_CLI_NODE_AGENT_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/server_flags.h"

namespace perseus::cli {

// What `agent` is asked for. Empty: the agent's own default.
struct AgentFlags {
  std::string action;  // run, status, release, relay

  std::string driver;
  std::string socket;
  std::string journal;
  std::string gpu_locks;

  // run
  bool observe = false;
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> operators;
  std::optional<double> min_interval_seconds;
  std::optional<double> max_silence_seconds;
  std::optional<double> poll_seconds;

  // relay
  ServerFlags server;

  std::string metrics_file;  // run, relay

  // release
  bool all = false;
  bool journaled = false;
  std::string gpu;

  bool json = false;  // status
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_AGENT_FLAGS_H_
