// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_SERVICE_H_
#define PERSEUS_AGENT_SERVICE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gpu_worker.h"
#include "agent/protocol.h"
#include "common/log.h"

namespace perseus::agent {

struct ServiceSettings {
  std::string driver;  // As it was named, for `status`.
  bool observe = false;
  std::chrono::nanoseconds max_silence = std::chrono::seconds(5);
  std::chrono::nanoseconds min_interval{0};  // For `status`.
  std::chrono::nanoseconds poll{0};
  std::chrono::nanoseconds release_all_patience = std::chrono::seconds(5);
};

// The client of a connection, as far as requests depend on it.
struct ClientIdentity {
  pid_t pid = 0;
  uid_t uid = 0;
  bool may_operate = false;
};

// Handles the agent's requests: manages leases, and passes the requests of lease owners to the
// GPUs' workers. Knows nothing of sockets: a connection is a number that is never 0 and never used
// twice. Passes answers, at once or later, to `send`. To be used by one thread; `now` must never go
// back.
class Service {
 public:
  using Clock = std::chrono::steady_clock;
  // Sends an answer. Must not call Disconnect() for the connection.
  using Send = std::function<void(std::uint64_t connection, const Answer& answer)>;

  // One worker for each GPU of the driver, in its order.
  Service(ServiceSettings settings, const device::Driver& driver,
          std::vector<std::unique_ptr<GpuWorker>> workers, std::shared_ptr<Log> log, Send send);

  void Connect(std::uint64_t connection, const ClientIdentity& identity, Clock::time_point now);
  void Handle(std::uint64_t connection, const Request& request, Clock::time_point now);
  // To be called when a client sends anything, even an invalid request: it shows that it is alive.
  void Heard(std::uint64_t connection, Clock::time_point now);
  // Ends the connection's leases and gives its clocks back. `why` is for the log.
  void Disconnect(std::uint64_t connection, std::string_view why);

  // Takes a worker's outcome from the mailbox.
  void Deliver(Outcome outcome, Clock::time_point now);
  // Gives back the clocks of clients that were silent for too long, and ends tasks that waited for
  // too long. Returns when to call it again; max(): only after something else happens.
  Clock::time_point OnTime(Clock::time_point now);

  bool HasLease(std::uint64_t connection) const;
  int InFlight(std::uint64_t connection) const;
  int connections() const { return static_cast<int>(clients_.size()); }

  // Gives the clocks of all GPUs back at the same time, and ends the workers. Returns a sentence
  // for each GPU whose clock is not back by the deadline.
  std::vector<std::string> Stop(Clock::time_point deadline);

 private:
  struct Client {
    ClientIdentity identity;
    std::string user;
    std::string name;
    bool said_hello = false;
    Clock::time_point heard;
    bool is_silent = false;  // It was silent for too long, so its clocks were given back.
    int in_flight = 0;
  };
  struct Slot {
    device::GpuInfo info;
    std::unique_ptr<GpuWorker> worker;
    std::uint64_t owner = 0;  // Connection; 0: none.
    Clock::time_point owned_since;
  };
  // A request release_all that waits until every GPU has answered.
  struct ReleaseTask {
    Ticket ticket;
    Clock::time_point deadline;
    std::vector<std::string> waiting;  // UUIDs.
    ReleaseAllAnswer answer;
  };

  void Refuse(const Ticket& ticket, Refusal code, std::string message);
  void Answered(const Ticket& ticket, decltype(Answer::body) body);
  bool MayAct(const Client& client, const Request& request, const Ticket& ticket);
  void Hello(Client* client, const Request& request, const Ticket& ticket);
  void Lease(const Client& client, Slot* slot, const Ticket& ticket, Clock::time_point now);
  // `only`: nullptr for all.
  void ReleaseAll(const Client& client, const Slot* only, const Ticket& ticket,
                  Clock::time_point now);
  StatusAnswer Status(Clock::time_point now) const;
  void EndLease(Slot* slot, std::string_view why);
  void FinishTask(std::map<std::int64_t, ReleaseTask>::iterator task);
  bool IsSilent(const Client& client, Clock::time_point now) const;
  Slot* Find(const std::string& uuid);

  const ServiceSettings settings_;
  const std::shared_ptr<Log> log_;
  const Send send_;
  const Clock::time_point started_ = Clock::now();
  std::vector<Slot> slots_;
  std::map<std::uint64_t, Client> clients_;
  std::map<std::int64_t, ReleaseTask> tasks_;
  std::int64_t next_task_ = 1;
  std::int64_t leases_ = 0;
  RefusalCounts refused_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SERVICE_H_
