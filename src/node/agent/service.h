// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_SERVICE_H_
#define PERSEUS_AGENT_SERVICE_H_

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/gpu_worker.h"
#include "agent/peer.h"
#include "agent/protocol.h"
#include "common/log.h"
#include "perseus/version.h"

namespace perseus::agent {

// The connection of tickets of the service's own tasks.
inline constexpr std::uint64_t kTasks = ~std::uint64_t{0};
inline constexpr Ticket kNobody = {};

inline double SecondsOf(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

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
          std::vector<std::unique_ptr<GpuWorker>> workers, std::shared_ptr<Log> log, Send send)
      : settings_(std::move(settings)), log_(std::move(log)), send_(std::move(send)) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      slots_.push_back({driver.gpus()[i]->info(), std::move(workers[i]), 0, {}});
    }
  }

  void Connect(std::uint64_t connection, const ClientIdentity& identity, Clock::time_point now) {
    Client client;
    client.identity = identity;
    client.user = DescribeUser(identity.uid);
    client.heard = now;
    clients_.emplace(connection, std::move(client));
  }

  void Handle(std::uint64_t connection, const Request& request, Clock::time_point now) {
    Heard(connection, now);
    Client& client = clients_.at(connection);
    ++client.in_flight;
    const Ticket ticket = {connection, request.id, request.operation};
    if (!MayAct(client, request, ticket)) return;
    Slot* slot = request.gpu.empty() ? nullptr : Find(request.gpu);
    switch (request.operation) {
      case Operation::kHello:
        Hello(&client, request, ticket);
        break;
      case Operation::kLease:
        Lease(client, slot, ticket, now);
        break;
      case Operation::kSet:
        if (settings_.observe) {
          Refuse(ticket, Refusal::kDenied,
                 "the agent only observes (--observe): it sets no clocks; start it without");
        } else {
          slot->worker->Lock(request.mhz, ticket);
        }
        break;
      case Operation::kRelease:
        slot->worker->Release(ticket, /*force=*/false);
        break;
      case Operation::kYield:
        slot->worker->Release(ticket, /*force=*/false);
        slot->owner = 0;
        log_->Write(LogLevel::kInfo, "lease_ended", {{"gpu", request.gpu}, {"why", "yielded"}});
        break;
      case Operation::kRenew:
        Answered(ticket, Done{});
        break;
      case Operation::kEnergy:
        slot->worker->ReadEnergy(ticket);
        break;
      case Operation::kClock:
        slot->worker->ReadClock(ticket);
        break;
      case Operation::kConditions:
        slot->worker->ReadConditions(ticket);
        break;
      case Operation::kStatus:
        Answered(ticket, Status(now));
        break;
      case Operation::kReleaseAll:
        ReleaseAll(client, slot, ticket, now);
        break;
    }
  }

  // To be called when a client sends anything, even an invalid request: it shows that it is alive.
  void Heard(std::uint64_t connection, Clock::time_point now) {
    Client& client = clients_.at(connection);
    client.heard = now;
    client.is_silent = false;
  }

  // Ends the connection's leases and gives its clocks back. `why` is for the log.
  void Disconnect(std::uint64_t connection, std::string_view why) {
    for (Slot& slot : slots_) {
      if (slot.owner == connection) EndLease(&slot, why);
    }
    clients_.erase(connection);
  }

  // Takes a worker's outcome from the mailbox.
  void Deliver(Outcome outcome, Clock::time_point now) {
    const Ticket& ticket = outcome.ticket;
    if (ticket.connection != kTasks) {
      // A client that waited for a slow driver was not silent.
      const auto client = clients_.find(ticket.connection);
      if (client != clients_.end() && !client->second.is_silent) client->second.heard = now;
      Answered(ticket, std::move(outcome.body));
      return;
    }
    const auto task = tasks_.find(ticket.id);
    if (task == tasks_.end()) return;  // Its patience has ended.
    std::erase(task->second.waiting, outcome.gpu);
    if (const auto* refused = std::get_if<Refused>(&outcome.body)) {
      task->second.answer.failed.push_back(refused->message);
    } else {
      ++task->second.answer.released;
    }
    if (task->second.waiting.empty()) FinishTask(task);
  }

  // Gives back the clocks of clients that were silent for too long, and ends tasks that waited for
  // too long. Returns when to call it again; max(): only after something else happens.
  Clock::time_point OnTime(Clock::time_point now) {
    Clock::time_point next = Clock::time_point::max();
    for (Slot& slot : slots_) {
      if (slot.owner == 0) continue;
      Client& owner = clients_.at(slot.owner);
      if (owner.in_flight > 0) continue;
      if (!IsSilent(owner, now)) {
        next = std::min(next, owner.heard + settings_.max_silence);
        continue;
      }
      if (slot.worker->HoldsClock()) {
        slot.worker->Release(kNobody, /*force=*/false);
        log_->Write(LogLevel::kWarning, "silent",
                    {{"gpu", slot.info.uuid},
                     {"pid", fmt::format("{}", owner.identity.pid)},
                     {"next",
                      "its clock is given back; it keeps the lease until another client asks for "
                      "the GPU"}});
      }
      owner.is_silent = true;
    }
    for (auto task = tasks_.begin(); task != tasks_.end();) {
      const auto current = task++;
      if (current->second.deadline <= now) {
        FinishTask(current);
      } else {
        next = std::min(next, current->second.deadline);
      }
    }
    return next;
  }

  bool HasLease(std::uint64_t connection) const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const Slot& slot) { return slot.owner == connection; });
  }

  int InFlight(std::uint64_t connection) const {
    const auto found = clients_.find(connection);
    return found == clients_.end() ? 0 : found->second.in_flight;
  }

  int connections() const { return static_cast<int>(clients_.size()); }

  // Gives the clocks of all GPUs back at the same time, and ends the workers. Returns a sentence
  // for each GPU whose clock is not back by the deadline.
  std::vector<std::string> Stop(Clock::time_point deadline) {
    for (Slot& slot : slots_) slot.worker->BeginStop();
    std::vector<std::string> failed;
    for (Slot& slot : slots_) {
      if (slot.worker->FinishStop(deadline)) continue;
      failed.push_back(fmt::format("GPU {}: its clock is not back ({})", slot.info.uuid,
                                   slot.worker->Status().last_error));
    }
    return failed;
  }

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

  void Refuse(const Ticket& ticket, Refusal code, std::string message) {
    Answered(ticket, perseus::agent::Refused{code, std::move(message)});
  }

  void Answered(const Ticket& ticket, decltype(Answer::body) body) {
    const auto client = clients_.find(ticket.connection);
    if (const auto* refused = std::get_if<Refused>(&body)) ++refused_.Of(refused->code);
    if (client == clients_.end()) return;  // Gone meanwhile.
    --client->second.in_flight;
    send_(ticket.connection, {ticket.id, ticket.operation, std::move(body)});
  }

  // Whether the request has a place here and its sender a right to it.
  bool MayAct(const Client& client, const Request& request, const Ticket& ticket) {
    if (request.operation != Operation::kHello && !client.said_hello) {
      Refuse(ticket, Refusal::kBadRequest,
             "the first request of a connection is hello, as in "
             "{\"id\":1,\"op\":\"hello\",\"version\":1}");
      return false;
    }
    if (request.gpu.empty()) return true;
    const Slot* slot = Find(request.gpu);
    if (slot == nullptr) {
      Refuse(ticket, Refusal::kUnknownGpu,
             fmt::format("this node has no GPU '{}'; the answer to hello lists its GPUs",
                         request.gpu));
      return false;
    }
    const bool is_owners = request.operation == Operation::kSet ||
                           request.operation == Operation::kRelease ||
                           request.operation == Operation::kYield;
    if (is_owners && slot->owner != ticket.connection) {
      Refuse(ticket, Refusal::kNotLeased,
             fmt::format(
                 "this connection has no lease of GPU {}: it never asked for one, an operator took "
                 "it away, or the connection was silent for too long",
                 request.gpu));
      return false;
    }
    return true;
  }

  void Hello(Client* client, const Request& request, const Ticket& ticket) {
    if (request.version != kProtocolVersion) {
      Refuse(ticket, Refusal::kBadRequest,
             fmt::format("this agent speaks version {} of its protocol, not {}; install the same "
                         "version of Perseus for agent and client",
                         kProtocolVersion, request.version));
      return;
    }
    client->said_hello = true;
    client->name = request.client;
    HelloAnswer hello;
    hello.program_version = PERSEUS_VERSION_STRING;
    hello.observe = settings_.observe;
    hello.max_silence_seconds = SecondsOf(settings_.max_silence);
    for (const Slot& slot : slots_) {
      GpuSummary gpu = {slot.info.uuid, slot.info.name, slot.info.index, slot.info.clocks_mhz, {}};
      if (slot.owner != 0) gpu.owner_pid = clients_.at(slot.owner).identity.pid;
      hello.gpus.push_back(std::move(gpu));
    }
    Answered(ticket, std::move(hello));
  }

  void Lease(const Client& client, Slot* slot, const Ticket& ticket, Clock::time_point now) {
    if (slot->owner != 0 && slot->owner != ticket.connection) {
      const Client& owner = clients_.at(slot->owner);
      if (!IsSilent(owner, now)) {
        Refuse(
            ticket, Refusal::kHeld,
            fmt::format("GPU {} is held by process {} of user {}{}; it is free when that process "
                        "ends or yields it",
                        slot->info.uuid, owner.identity.pid, owner.user,
                        owner.name.empty() ? "" : fmt::format(", '{}'", owner.name)));
        return;
      }
      EndLease(slot, "it was silent, and another client asked for the GPU");
    }
    if (slot->owner == 0) {
      slot->owner = ticket.connection;
      slot->owned_since = now;
      ++leases_;
      log_->Write(LogLevel::kInfo, "lease",
                  {{"gpu", slot->info.uuid},
                   {"pid", fmt::format("{}", client.identity.pid)},
                   {"user", client.user},
                   {"client", client.name}});
    }
    Answered(ticket, Done{});
  }

  // `only`: nullptr for all.
  void ReleaseAll(const Client& client, const Slot* only, const Ticket& ticket,
                  Clock::time_point now) {
    if (!client.identity.may_operate || settings_.observe) {
      Refuse(ticket, Refusal::kDenied,
             settings_.observe
                 ? std::string("the agent only observes (--observe): it gives back no clocks")
                 : fmt::format(
                       "user {} may not give back the clocks of others; root may, and users that "
                       "--operator named when the agent started",
                       client.user));
      return;
    }
    const std::int64_t number = next_task_++;
    ReleaseTask& task = tasks_[number];
    task.ticket = ticket;
    task.deadline = now + settings_.release_all_patience;
    for (Slot& slot : slots_) {
      if (only != nullptr && only != &slot) continue;
      task.waiting.push_back(slot.info.uuid);
      if (slot.owner != 0) EndLease(&slot, "an operator released it");
      slot.worker->Release({kTasks, number, Operation::kReleaseAll}, /*force=*/true);
    }
    log_->Write(LogLevel::kWarning, "release_all",
                {{"gpu", only == nullptr ? "all" : only->info.uuid},
                 {"pid", fmt::format("{}", client.identity.pid)},
                 {"user", client.user}});
    if (task.waiting.empty()) FinishTask(tasks_.find(number));
  }

  StatusAnswer Status(Clock::time_point now) const {
    StatusAnswer status;
    status.pid = ::getpid();
    status.driver = settings_.driver;
    status.observe = settings_.observe;
    status.uptime_seconds = SecondsOf(now - started_);
    status.max_silence_seconds = SecondsOf(settings_.max_silence);
    status.min_interval_seconds = SecondsOf(settings_.min_interval);
    status.poll_seconds = SecondsOf(settings_.poll);
    status.connections = connections();
    status.leases = leases_;
    status.refused = refused_;
    for (const Slot& slot : slots_) {
      GpuStatus gpu = slot.worker->Status();
      if (slot.owner != 0) {
        const Client& owner = clients_.at(slot.owner);
        gpu.owner = OwnerStatus{.pid = owner.identity.pid,
                                .uid = owner.identity.uid,
                                .user = owner.user,
                                .client = owner.name,
                                .held_seconds = SecondsOf(now - slot.owned_since),
                                .silent_seconds = SecondsOf(now - owner.heard)};
      }
      status.gpus.push_back(std::move(gpu));
    }
    return status;
  }

  void EndLease(Slot* slot, std::string_view why) {
    slot->worker->Release(kNobody, /*force=*/false);
    const Client& owner = clients_.at(slot->owner);
    log_->Write(LogLevel::kInfo, "lease_ended",
                {{"gpu", slot->info.uuid},
                 {"pid", fmt::format("{}", owner.identity.pid)},
                 {"why", std::string(why)}});
    slot->owner = 0;
  }

  void FinishTask(std::map<std::int64_t, ReleaseTask>::iterator task) {
    for (const std::string& uuid : task->second.waiting) {
      task->second.answer.failed.push_back(fmt::format(
          "GPU {}: the driver has not answered yet; its clock is given back when it does", uuid));
    }
    const ReleaseTask done = std::move(task->second);
    tasks_.erase(task);
    Answered(done.ticket, done.answer);
  }

  bool IsSilent(const Client& client, Clock::time_point now) const {
    // A client that waits for an answer need not speak.
    return client.is_silent ||
           (client.in_flight == 0 && now - client.heard >= settings_.max_silence);
  }

  Slot* Find(const std::string& uuid) {
    const auto found = std::find_if(slots_.begin(), slots_.end(),
                                    [&](const Slot& slot) { return slot.info.uuid == uuid; });
    return found == slots_.end() ? nullptr : &*found;
  }

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
