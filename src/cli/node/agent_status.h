// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_AGENT_STATUS_H_
#define PERSEUS_CLI_NODE_AGENT_STATUS_H_

#include <string>

#include "agent/protocol.h"
#include "perseus/result.h"

namespace perseus::cli {

// What the agent at `socket` says of itself. `name` is what it calls who asks.
Result<agent::StatusAnswer> AskAgentStatus(const std::string& socket, const std::string& name);

// The same as JSON (perseus agent status --json).
std::string AgentStatusJson(const agent::StatusAnswer& status);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_AGENT_STATUS_H_
