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
#include "agent/mailbox.h"
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

// Who is connected, as far as requests are concerned.
struct ClientIdentity {
  pid_t pid = 0;
  uid_t uid = 0;
  bool may_operate = false;
};

// What the agent does with requests: leases, and whose wishes reach the GPUs.
// Knows nothing of sockets; a connection is a number that is never used twice
// and never 0. Answers, which come at once or later, go to `send`. To be used by one thread,
// with one clock: `now` never goes back.
class Service {
 public:
  using Clock = std::chrono::steady_clock;
  // The connection may be ended within, by whoever owns it, but not through Service.
  using Send = std::function<void(std::uint64_t connection, const Answer& answer)>;

  // One worker for each GPU of the driver, in its order.
  Service(ServiceSettings settings, const device::Driver& driver,
          std::vector<std::unique_ptr<GpuWorker>> workers, std::shared_ptr<Log> log, Send send);

  void Connect(std::uint64_t connection, const ClientIdentity& identity, Clock::time_point now);
  void Handle(std::uint64_t connection, const Request& request, Clock::time_point now);
  // Anything that the client says is a sign of life, also what is no request.
  void Heard(std::uint64_t connection, Clock::time_point now);
  // Gives back all that the connection had. `why` is for the log.
  void Disconnect(std::uint64_t connection, std::string_view why);

  // Of a worker, through the mailbox.
  void Deliver(Outcome outcome, Clock::time_point now);
  // Takes clocks from clients that are silent for too long, ends tasks that wait for too
  // long. Returns when to call again; max(): not before something else happens.
  Clock::time_point OnTime(Clock::time_point now);

  bool HasLease(std::uint64_t connection) const;
  int InFlight(std::uint64_t connection) const;
  int connections() const { return static_cast<int>(clients_.size()); }

  // Gives all clocks back, all GPUs at once, and ends the workers. A sentence for each
  // GPU whose clock is not back by the deadline.
  std::vector<std::string> Stop(Clock::time_point deadline);

 private:
  struct Client {
    ClientIdentity identity;
    std::string user;
    std::string name;
    bool said_hello = false;
    Clock::time_point heard;
    bool is_silent = false;  // For so long that its clocks were taken.
    int in_flight = 0;
  };
  struct Slot {
    device::GpuInfo info;
    std::unique_ptr<GpuWorker> worker;
    std::uint64_t owner = 0;  // Connection; 0: none.
    Clock::time_point owned_since;
  };
  // release_all, until every GPU has answered.
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
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SERVICE_H_
