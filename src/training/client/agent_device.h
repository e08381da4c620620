// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_AGENT_DEVICE_H_
#define PERSEUS_CLIENT_AGENT_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/agent_word.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::client {

// A device::Driver for the GPUs of a node's agent. The first clock call for a GPU takes its lease,
// which this driver keeps as long as it lives. If this process dies in any way, the agent gives the
// clock back. A clock call waits for the agent's answer (10 s at most).
//
// Thread-safe; calls wait for each other. Errors: kIo (no agent, no answer,
// connection lost: the next call connects anew, within 2 s), kDenied (somebody else has
// the lease, or the agent does not allow it). After an operator took the lease
// away, calls fail with kDenied: it is not taken again.
class AgentDriver : public device::Driver {
 public:
  // `socket`: "/run/perseus/agent.sock". `name`: a name of this client, for people.
  static Result<std::unique_ptr<AgentDriver>> Connect(const std::string& socket,
                                                      const std::string& name);

  // If this client makes no call for so long, the agent gives the clock back; 0: never.
  virtual double max_silence_seconds() const = 0;
  // How often the connection was lost. Each time, lease and clock were lost, too.
  virtual std::uint64_t losses() const = 0;
  virtual Result<void> Renew() = 0;  // Tells the agent that this process is alive.
};

// The socket of a device "agent:SOCKET"; none: another device.
std::optional<std::string> AgentSocketOf(const std::string& device);

// What the agent says of itself and of a GPU, by UUID. It is asked over a connection of its own, so
// that no clock call waits for the answer, which takes a few seconds at most.
Result<AgentWord> AskAgent(const std::string& socket, const std::string& name,
                           const std::string& gpu);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_AGENT_DEVICE_H_
