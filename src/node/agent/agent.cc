// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/gpu_worker.h"
#include "agent/journal.h"
#include "agent/peer.h"
#include "agent/protocol.h"
#include "agent/release.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/numbers.h"
#include "common/unix_socket.h"
#include "device/device.h"
#include "perseus/result.h"
#include "perseus/version.h"

namespace perseus::agent {
namespace {

// The connection of tickets of the service's own tasks.
constexpr std::uint64_t kTasks = ~std::uint64_t{0};
constexpr Ticket kNobody = {};

double SecondsOf(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

constexpr auto kReleaseAllPatience = std::chrono::seconds(5);

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
  Service(const AgentOptions& options, const device::Driver& driver,
          std::vector<std::unique_ptr<GpuWorker>> workers, std::shared_ptr<Log> log, Send send)
      : options_(options), log_(std::move(log)), send_(std::move(send)) {
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
        if (options_.observe) {
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
        next = std::min(next, owner.heard + options_.max_silence);
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
    Answered(ticket, agent::Refused{code, std::move(message)});
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
    hello.observe = options_.observe;
    hello.max_silence_seconds = SecondsOf(options_.max_silence);
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
    if (!client.identity.may_operate || options_.observe) {
      Refuse(ticket, Refusal::kDenied,
             options_.observe
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
    task.deadline = now + kReleaseAllPatience;
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
    status.driver = options_.driver;
    status.observe = options_.observe;
    status.uptime_seconds = SecondsOf(now - started_);
    status.max_silence_seconds = SecondsOf(options_.max_silence);
    status.min_interval_seconds = SecondsOf(options_.worker.min_interval);
    status.poll_seconds = SecondsOf(options_.worker.poll);
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
           (client.in_flight == 0 && now - client.heard >= options_.max_silence);
  }

  Slot* Find(const std::string& uuid) {
    const auto found = std::find_if(slots_.begin(), slots_.end(),
                                    [&](const Slot& slot) { return slot.info.uuid == uuid; });
    return found == slots_.end() ? nullptr : &*found;
  }

  const AgentOptions& options_;
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

// Reports the state of the service to systemd (as sd_notify(3), without its library). Does nothing
// if systemd did not start the process.
class ServiceNotifier {
 public:
  // Reads $NOTIFY_SOCKET and $WATCHDOG_USEC. Call it once at the start.
  static ServiceNotifier FromEnvironment() {
    ServiceNotifier notifier;
    if (const char* path = std::getenv("NOTIFY_SOCKET")) notifier.socket_ = path;
    if (const char* text = std::getenv("WATCHDOG_USEC")) {
      const auto microseconds = ParseInteger<std::int64_t>(text);
      if (microseconds && *microseconds > 0) {
        notifier.watchdog_ = std::chrono::microseconds(*microseconds) / 2;
      }
    }
    return notifier;
  }

  // "READY=1", "STOPPING=1", "WATCHDOG=1". Best effort.
  void Tell(std::string_view state) const {
    auto address = UnixAddressOf(socket_);
    if (!address) return;
    if (address->sun_path[0] == '@') address->sun_path[0] = '\0';  // Abstract.
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
    const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return;
    ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             AsAddress(*address), size);
  }

  // How often to send "WATCHDOG=1": half of systemd's time limit.
  std::optional<std::chrono::nanoseconds> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<std::chrono::nanoseconds> watchdog_;
};

// Reads and writes lines on one non-blocking socket. Its memory is limited: it fails if a line is
// longer than kMaxRequestBytes, or if the other side leaves kMaxUnread bytes unread. Not
// thread-safe.
class Connection {
 public:
  static constexpr std::size_t kMaxUnread = std::size_t{1} << 20;

  Connection(FileDescriptor socket, Peer peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {}

  int descriptor() const { return socket_.get(); }
  const Peer& peer() const { return peer_; }

  // Reads some bytes. False: the other side has closed the connection.
  bool Receive() {
    constexpr std::size_t kChunk = std::size_t{16} << 10;
    buffer_.erase(0, read_);
    read_ = 0;
    if (IsTooLong() || buffer_.size() > kMaxRequestBytes) return true;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kChunk);
    const ssize_t count = ::recv(socket_.get(), buffer_.data() + before, kChunk, 0);
    buffer_.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  // The next whole line, without its end; valid until the next call.
  std::optional<std::string_view> NextLine() {
    const std::size_t end = buffer_.find('\n', read_);
    if (end == std::string::npos) return std::nullopt;
    const std::string_view line = std::string_view(buffer_).substr(read_, end - read_);
    read_ = end + 1;
    return line;
  }

  bool HasLine() const { return buffer_.find('\n', read_) != std::string::npos; }
  // Whether the received bytes have no line end although they are longer than any request.
  bool IsTooLong() const { return !HasLine() && buffer_.size() - read_ >= kMaxRequestBytes; }

  // Queues a line and sends as much as the socket takes. False: the other side reads too slowly or
  // has disconnected.
  bool Send(std::string_view line) {
    if (unsent_.size() + line.size() > kMaxUnread) return false;
    unsent_ += line;
    return Flush();
  }

  bool Flush() {
    std::size_t sent = 0;
    while (sent < unsent_.size()) {
      const ssize_t count =
          ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN) return false;
      if (count < 0) break;
      sent += static_cast<std::size_t>(count);
    }
    unsent_.erase(0, sent);
    return true;
  }

  bool HasUnsent() const { return !unsent_.empty(); }

 private:
  FileDescriptor socket_;
  Peer peer_;
  std::string buffer_;
  std::size_t read_ = 0;  // How many bytes of buffer_ NextLine() has returned.
  std::string unsent_;
};

// Keys of epoll events: a session's socket or process (its number, times two, plus which), or one
// of these.
constexpr std::uint64_t kListenKey = 0;
constexpr std::uint64_t kMailKey = 1;
constexpr std::uint64_t kStopKey = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t SocketKey(std::uint64_t session) { return session * 2; }
constexpr std::uint64_t ProcessKey(std::uint64_t session) { return session * 2 + 1; }

// Requests of one connection before the others have their turn,
constexpr int kLinesAtOnce = 4;
// and of all before the agent looks whether a client has ended: as many short ones,
// or fewer long ones.
constexpr int kWorkAtOnce = 64;
constexpr std::size_t kBytesOfWork = 512;
constexpr int kAcceptsAtOnce = 16;
// Of one connection, before it is ended.
constexpr int kMaxFaults = 32;
// Connections beyond the limit, so that an operator always gets in.
constexpr int kReservedForRoot = 8;
// After descriptors have run out.
constexpr auto kAcceptPause = std::chrono::seconds(1);

Result<void> CheckRights(const AgentOptions& options, device::Driver* driver) {
  if (options.observe) return {};
  const Result<bool> may_set = driver->MaySetClocks();
  if (!may_set) return tl::unexpected(may_set.error());
  if (*may_set) return {};
  return MakeError(
      ErrorCode::kDenied,
      fmt::format("this process may not set clocks through '{}': that needs root or CAP_SYS_ADMIN; "
                  "start the agent as root (packaging/perseus-agent.service does), or with "
                  "--observe, which sets none",
                  options.driver));
}

class RunningAgent : public Agent {
 public:
  RunningAgent(AgentOptions options, std::shared_ptr<Log> log, ListeningSocket listening)
      : options_(std::move(options)),
        log_(std::move(log)),
        notifier_(ServiceNotifier::FromEnvironment()),
        listening_(std::make_unique<ListeningSocket>(std::move(listening))),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        mailbox_(std::make_shared<Mailbox>()) {}

  Result<void> SetUp(std::shared_ptr<device::Driver> driver, Takeover takeover) {
    if (!epoll_.valid() || !AddToEpoll(listening_->descriptor(), kListenKey, EPOLLIN) ||
        !AddToEpoll(mailbox_->descriptor(), kMailKey, EPOLLIN)) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot watch the agent's socket: {}", SystemMessage(errno)));
    }
    const std::vector<std::unique_ptr<device::Gpu>>& gpus = driver->gpus();
    WorkerContext context = {std::move(driver), std::move(takeover.journal), log_, mailbox_,
                             options_.worker};
    context.settings.observe = options_.observe;
    std::vector<std::unique_ptr<GpuWorker>> workers;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      context.claim = std::move(takeover.claims[i]);
      workers.push_back(std::make_unique<GpuWorker>(context, gpus[i].get(), takeover.is_dirty[i]));
    }
    service_ = std::make_unique<Service>(
        options_, *context.driver, std::move(workers), log_,
        [this](std::uint64_t id, const Answer& answer) { Send(id, answer); });
    log_->Write(LogLevel::kInfo, "start",
                {{"driver", options_.driver},
                 {"gpus", fmt::format("{}", gpus.size())},
                 {"socket", options_.socket_path},
                 {"observe", options_.observe ? "yes" : "no"}});
    return {};
  }

  Result<void> Run(int stop) override {
    if (!AddToEpoll(stop, kStopKey, EPOLLIN)) {
      return MakeError(ErrorCode::kInternal,
                       fmt::format("cannot wait for the end: {}", SystemMessage(errno)));
    }
    notifier_.Tell("READY=1");
    while (!ServeOnce()) {
    }
    notifier_.Tell("STOPPING=1");
    listening_.reset();  // Who connects from now on learns at once that no agent is here.
    const std::vector<std::string> failed = service_->Stop(Clock::now() + options_.stop_patience);
    sessions_.clear();
    for (const std::string& sentence : failed) {
      log_->Write(LogLevel::kError, "not_restored", {{"error", sentence}});
    }
    log_->Write(LogLevel::kInfo, "stop", {{"not_restored", fmt::format("{}", failed.size())}});
    log_->Flush(std::chrono::seconds(1));
    if (failed.empty()) return {};
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}; the journal {} names what is missing, and the next start, or "
                                 "'perseus agent release', gives it back",
                                 failed.front(), options_.journal_path));
  }

 private:
  using Clock = Service::Clock;
  struct Session {
    Connection connection;
    std::uint32_t events = 0;   // That epoll watches.
    const char* end = nullptr;  // If not null: end the connection for this reason.
    int faults = 0;             // Number of lines that were not valid requests.
    bool waits = false;         // It is in `with_lines_`.
  };

  // Takes what epoll says. True: the agent is asked to stop.
  bool ServeOnce() {
    Clock::time_point next = service_->OnTime(Clock::now());
    if (accept_again_) next = std::min(next, *accept_again_);
    std::array<epoll_event, 64> events;
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Timeout(next));
    TellWatchdog(Clock::now());
    bool must_stop = false;
    bool must_accept = accept_again_ && Clock::now() >= *accept_again_;
    std::vector<std::uint64_t> readable;
    // Ends first: a clock that must go back waits for nobody's requests.
    for (int i = 0; i < count; ++i) {
      const std::uint64_t key = events[i].data.u64;
      must_stop = must_stop || key == kStopKey;
      must_accept = must_accept || key == kListenKey;
      const auto session = sessions_.find(key / 2);
      if (key <= kMailKey || session == sessions_.end()) continue;
      if (key == ProcessKey(session->first)) {
        session->second.end = "its process ended";
      } else if (TakeSocketEvents(session->first, events[i].events, &session->second)) {
        readable.push_back(session->first);
      }
    }
    EndMarked();
    for (Outcome& outcome : mailbox_->TakeAll())
      service_->Deliver(std::move(outcome), Clock::now());
    ServeWaiting();
    for (const std::uint64_t id : readable) {
      if (const auto session = sessions_.find(id); session != sessions_.end()) {
        Receive(id, &session->second);
      }
    }
    if (must_accept) Accept();
    EndMarked();
    for (auto& [id, session] : sessions_) Watch(id, &session);
    return must_stop;
  }

  // True: there may be something to read.
  bool TakeSocketEvents(std::uint64_t id, std::uint32_t events, Session* session) {
    const bool broke = (events & (EPOLLERR | EPOLLHUP)) != 0;
    const bool says_no_more = (events & EPOLLRDHUP) != 0;
    if (broke || (says_no_more && (service_->HasLease(id) || IsBusy(id)))) {
      session->end = "its connection closed";
      return false;
    }
    if ((events & EPOLLOUT) != 0 && !session->connection.Flush()) {
      session->end = "its connection broke";
      return false;
    }
    return (events & (EPOLLIN | EPOLLRDHUP)) != 0;
  }

  bool IsBusy(std::uint64_t id) const { return service_->InFlight(id) >= kMaxRequestsInFlight; }

  void Receive(std::uint64_t id, Session* session) {
    if (!session->connection.Receive()) {
      ServeLines(id, session);  // What it said last.
      session->end = "its connection closed";
    } else if (session->connection.IsTooLong()) {
      Send(id, {std::nullopt, std::nullopt,
                Refused{Refusal::kBadRequest,
                        fmt::format("a request has at most {} bytes; the connection is closed",
                                    kMaxRequestBytes)}});
      session->end = "it sent a request that is too long";
    }
  }

  // In turn, as much as may be done before looking at the events again.
  void ServeWaiting() {
    for (int work = 0; work < kWorkAtOnce && !with_lines_.empty();) {
      const std::uint64_t id = with_lines_.front();
      with_lines_.pop_front();
      const auto session = sessions_.find(id);
      if (session == sessions_.end()) continue;
      session->second.waits = false;
      work += ServeLines(id, &session->second);
    }
  }

  int ServeLines(std::uint64_t id, Session* session) {
    int work = 0;
    for (int lines = 0; lines < kLinesAtOnce && !IsBusy(id) && session->end == nullptr; ++lines) {
      const std::optional<std::string_view> line = session->connection.NextLine();
      if (!line) break;
      work += 1 + static_cast<int>(line->size() / kBytesOfWork);
      const auto request = ParseRequest(*line);
      if (request) {
        service_->Handle(id, *request, Clock::now());
        continue;
      }
      service_->Heard(id, Clock::now());
      Send(id, {request.error().id, std::nullopt,
                Refused{Refusal::kBadRequest, request.error().message}});
      if (++session->faults >= kMaxFaults) session->end = "it sent lines that are not requests";
    }
    return work;
  }

  void Send(std::uint64_t id, const Answer& answer) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end() || session->second.end != nullptr) return;
    if (!session->second.connection.Send(FormatAnswer(answer))) {
      session->second.end = "it does not read its answers";
    }
  }

  void EndMarked() {
    for (auto session = sessions_.begin(); session != sessions_.end();) {
      const auto current = session++;
      if (current->second.end == nullptr) continue;
      service_->Disconnect(current->first, current->second.end);
      sessions_.erase(current);
    }
  }

  // Reads on only when what has come is served, so that a client that asks more
  // than it waits for is slowed, not the agent.
  void Watch(std::uint64_t id, Session* session) {
    const bool has_line = session->connection.HasLine();
    if (has_line && !IsBusy(id) && !session->waits) {
      with_lines_.push_back(id);
      session->waits = true;
    }
    std::uint32_t events = EPOLLRDHUP;
    if (!has_line && !IsBusy(id)) events |= EPOLLIN;
    if (session->connection.HasUnsent()) events |= EPOLLOUT;
    if (events == session->events) return;
    epoll_event event{};
    event.events = events;
    event.data.u64 = SocketKey(id);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session->connection.descriptor(), &event);
    session->events = events;
  }

  void Accept() {
    if (accept_again_) {
      accept_again_.reset();
      AddToEpoll(listening_->descriptor(), kListenKey, EPOLLIN);
    }
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      FileDescriptor socket(
          ::accept4(listening_->descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.valid()) {
        Admit(std::move(socket));
        continue;
      }
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN) {
        // No descriptors or memory: who waits stays in the queue until some are free.
        log_->Write(LogLevel::kWarning, "accept_failed", {{"error", SystemMessage(errno)}});
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listening_->descriptor(), nullptr);
        accept_again_ = Clock::now() + kAcceptPause;
      }
      return;
    }
  }

  // Empty: it may come in.
  Refused ReasonAgainst(const Peer& peer) const {
    if (!options_.access.MayUse(peer)) {
      return {Refusal::kDenied,
              fmt::format("user {} may not use this agent; whoever runs it can allow that with "
                          "--allow-user {} or --allow-group {}",
                          DescribeUser(peer.uid), peer.uid, peer.gid)};
    }
    const auto of_user = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& each) {
      return each.second.connection.peer().uid == peer.uid;
    });
    const int limit = options_.max_connections + (peer.uid == 0 ? kReservedForRoot : 0);
    if (std::cmp_greater_equal(sessions_.size(), limit)) {
      return {Refusal::kDenied,
              fmt::format("the agent serves {} connections already, which is its limit", limit)};
    }
    if (peer.uid != 0 && of_user >= options_.max_connections_per_user) {
      return {Refusal::kDenied,
              fmt::format("user {} has {} connections already, which is the limit",
                          DescribeUser(peer.uid), of_user)};
    }
    return {};
  }

  void Admit(FileDescriptor socket) {
    const int descriptor = socket.get();
    Result<Peer> peer = PeerOf(descriptor);
    const Refused refused =
        peer ? ReasonAgainst(*peer) : Refused{Refusal::kDenied, peer.error().message};
    const std::uint64_t id = next_session_;
    if (!refused.message.empty() || !AddToEpoll(descriptor, SocketKey(id), EPOLLIN | EPOLLRDHUP) ||
        !AddToEpoll(peer->pidfd.get(), ProcessKey(id), EPOLLIN)) {
      const std::string line = FormatAnswer({std::nullopt, std::nullopt, refused});
      ::send(descriptor, line.data(), line.size(), MSG_NOSIGNAL);
      log_->Write(LogLevel::kWarning, "refused_connection", {{"why", refused.message}});
      return;
    }
    ++next_session_;
    service_->Connect(id, {peer->pid, peer->uid, options_.access.MayOperate(*peer)}, Clock::now());
    sessions_.emplace(
        id, Session{Connection(std::move(socket), *std::move(peer)), EPOLLIN | EPOLLRDHUP});
  }

  bool AddToEpoll(int descriptor, std::uint64_t key, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  }

  int Timeout(Clock::time_point next) const {
    if (!with_lines_.empty()) return 0;  // Their turn comes after a look at the events.
    if (notifier_.watchdog()) next = std::min(next, next_watchdog_);
    if (next == Clock::time_point::max()) return -1;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
  }

  void TellWatchdog(Clock::time_point now) {
    if (!notifier_.watchdog() || now < next_watchdog_) return;
    notifier_.Tell("WATCHDOG=1");
    next_watchdog_ = now + *notifier_.watchdog();
  }

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

}  // namespace

Result<std::unique_ptr<Agent>> Agent::Start(AgentOptions options,
                                            std::shared_ptr<device::Driver> driver,
                                            std::shared_ptr<Log> log) {
  if (auto may_set = CheckRights(options, driver.get()); !may_set) {
    return tl::unexpected(may_set.error());
  }
  Takeover takeover;
  takeover.is_dirty.resize(driver->gpus().size());
  takeover.claims.resize(driver->gpus().size());
  if (!options.observe) {
    Result<Takeover> taken = TakeOver(
        options.journal_path, options.gpu_locks, driver,
        std::chrono::duration_cast<std::chrono::milliseconds>(options.stop_patience), log.get());
    if (!taken) {
      log->Flush(std::chrono::seconds(1));
      return tl::unexpected(taken.error());
    }
    takeover = *std::move(taken);
  }
  Result<ListeningSocket> listening = ListeningSocket::Listen(options.socket_path);
  if (!listening) return tl::unexpected(listening.error());
  auto agent =
      std::make_unique<RunningAgent>(std::move(options), std::move(log), *std::move(listening));
  if (auto set_up = agent->SetUp(std::move(driver), std::move(takeover)); !set_up) {
    return tl::unexpected(set_up.error());
  }
  return agent;
}

}  // namespace perseus::agent
