// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_AGENT_WORD_H_
#define PERSEUS_CLIENT_AGENT_WORD_H_

#include <string>
#include <vector>

namespace perseus::client {

// What a node's agent says, for the server: the server never hears the agent itself.
struct AgentWord {
  std::string version;                 // Of its program. Empty: the agent does not say.
  std::vector<std::string> conflicts;  // What acts against the clock of this client's GPU.
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_AGENT_WORD_H_
