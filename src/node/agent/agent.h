// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_AGENT_H_
#define PERSEUS_AGENT_AGENT_H_

#include <chrono>
#include <memory>
#include <string>

#include "agent/gpu_worker.h"
#include "agent/journal.h"
#include "agent/peer.h"
#include "agent/protocol.h"
#include "common/log.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {

struct AgentOptions {
  std::string driver = "nvml";  // As it was named, for messages.
  std::string socket_path = kDefaultSocketPath;
  std::string journal_path = kDefaultJournalPath;
  std::string gpu_locks = kDefaultGpuLocks;  // The folder of GpuClaim.
  bool observe = false;                      // Set no clock. Needs no privilege.
  AccessList access;
  WorkerSettings worker;  // `observe` is taken from above.
  std::chrono::nanoseconds max_silence = std::chrono::seconds(5);
  std::chrono::nanoseconds stop_patience = std::chrono::seconds(10);
  int max_connections = 256;
  int max_connections_per_user = 64;  // Root has no limit.
};

// The one privileged process of a node. Clients lease GPUs over a Unix socket and ask it to lock
// their clocks. However a client ends, the agent gives its clocks back.
//
// One thread serves the socket and watches the clients' processes. It never waits for a driver or a
// disk. Each GPU has another thread (GpuWorker) that makes the driver's calls.
class Agent {
 public:
  // Gives back the clocks that a killed agent's journal names, and starts to listen. Block the
  // signals that end the program before this call, so that its threads inherit that. Errors: no
  // right to set clocks (kDenied), another agent runs, journal or socket cannot be made.
  static Result<std::unique_ptr<Agent>> Start(AgentOptions options,
                                              std::shared_ptr<device::Driver> driver,
                                              std::shared_ptr<Log> log);
  Agent() = default;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  virtual ~Agent() = default;

  // Serves until `stop` (an eventfd, a signalfd) is readable, then gives all clocks back.
  // kIo: a clock could not be given back; the journal names it.
  virtual Result<void> Run(int stop) = 0;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_AGENT_H_
