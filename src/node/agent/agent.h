// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_AGENT_H_
#define PERSEUS_AGENT_AGENT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/connection.h"
#include "agent/gpu_claim.h"
#include "agent/gpu_worker.h"
#include "agent/journal.h"
#include "agent/mailbox.h"
#include "agent/notify.h"
#include "agent/peer.h"
#include "agent/protocol.h"
#include "agent/service.h"
#include "agent/socket.h"
#include "agent/takeover.h"
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
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  // Serves until `stop` (an eventfd, a signalfd) is readable, then gives all clocks back.
  // kIo: a clock could not be given back; the journal names it.
  Result<void> Run(int stop);

 private:
  using Clock = Service::Clock;
  struct Session {
    Connection connection;
    std::uint32_t events = 0;   // That epoll watches.
    const char* end = nullptr;  // If not null: end the connection for this reason.
    int faults = 0;             // Number of lines that were not valid requests.
    bool waits = false;         // It is in `with_lines_`.
  };

  Agent(AgentOptions options, std::shared_ptr<Log> log, ListeningSocket listening);

  Result<void> SetUp(std::shared_ptr<device::Driver> driver, Takeover takeover);
  bool ServeOnce();
  bool TakeSocketEvents(std::uint64_t id, std::uint32_t events, Session* session);
  bool IsBusy(std::uint64_t id) const;
  void Receive(std::uint64_t id, Session* session);
  void ServeWaiting();
  int ServeLines(std::uint64_t id, Session* session);
  void Send(std::uint64_t id, const Answer& answer);
  void EndMarked();
  void Watch(std::uint64_t id, Session* session);
  void Accept();
  Refused ReasonAgainst(const Peer& peer) const;
  void Admit(FileDescriptor socket);
  bool AddToEpoll(int descriptor, std::uint64_t key, std::uint32_t events);
  int Timeout(Clock::time_point next) const;
  void TellWatchdog(Clock::time_point now);

  const AgentOptions options_;
  const std::shared_ptr<Log> log_;
  const ServiceNotifier notifier_;
  std::unique_ptr<ListeningSocket> listening_;
  FileDescriptor epoll_;
  std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<Service> service_;
  std::map<std::uint64_t, Session> sessions_;
  std::deque<std::uint64_t> with_lines_;  // Sessions whose requests wait for their turn.
  std::uint64_t next_session_ = 1;
  std::optional<Clock::time_point> accept_again_;  // If set: accept no connections until then.
  Clock::time_point next_watchdog_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_AGENT_H_
