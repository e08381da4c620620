// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
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
#include "agent/service.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/numbers.h"
#include "common/unix_socket.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {
namespace {

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
    ServiceSettings settings;
    settings.driver = options_.driver;
    settings.observe = options_.observe;
    settings.max_silence = options_.max_silence;
    settings.min_interval = options_.worker.min_interval;
    settings.poll = options_.worker.poll;
    service_ = std::make_unique<Service>(
        std::move(settings), *context.driver, std::move(workers), log_,
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
