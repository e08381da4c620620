// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_AGENT_RELAY_H_
#define PERSEUS_CLI_AGENT_RELAY_H_

#include <memory>

#include "agent/agent.h"
#include "cli/agent_flags.h"
#include "cli/commands.h"
#include "perseus/result.h"
#include "relay/relay.h"

namespace perseus::cli {

// Not in the agent's folder: that goes when the agent's service stops.
inline constexpr const char* kDefaultRelaySocket = "/run/perseus-relay/server.sock";

// `perseus agent relay`: until SIGTERM.
Result<Printout> ServeRelay(const AgentFlags& flags, const agent::AccessList& access);

// `perseus agent run --server URL`: the same beside an agent, for those on its list. Null
// where no server is named. An address that is none is an error; anything else that is
// wrong goes to the log, as clocks are the agent's first duty.
Result<std::unique_ptr<relay::Relay>> StartRelayBeside(const AgentFlags& flags,
                                                       const agent::AgentOptions& options,
                                                       const std::shared_ptr<Log>& log);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_AGENT_RELAY_H_
