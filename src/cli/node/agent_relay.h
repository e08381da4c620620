// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_AGENT_RELAY_H_
#define PERSEUS_CLI_NODE_AGENT_RELAY_H_

#include "agent/agent.h"
#include "cli/commands.h"
#include "cli/node/agent_flags.h"
#include "perseus/result.h"

namespace perseus::cli {

// Not in the agent's folder, which is root's.
inline constexpr const char* kDefaultRelaySocket = "/run/perseus-relay/server.sock";

// `perseus agent relay`: until SIGTERM.
Result<Printout> ServeRelay(const AgentFlags& flags, const agent::AccessList& access);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_AGENT_RELAY_H_
