// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

namespace perseus::agent {
namespace {

// What an event of epoll is about: a session's socket or process (its number,
// times two, plus which), or one of these.
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

}  // namespace

Agent::Agent(AgentOptions options, std::shared_ptr<Log> log, ListeningSocket listening)
    : options_(std::move(options)),
      log_(std::move(log)),
      notifier_(ServiceNotifier::FromEnvironment()),
      listening_(std::make_unique<ListeningSocket>(std::move(listening))),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      mailbox_(std::make_shared<Mailbox>()) {}

Agent::~Agent() = default;

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
  std::unique_ptr<Agent> agent(
      new Agent(std::move(options), std::move(log), *std::move(listening)));
  if (auto set_up = agent->SetUp(std::move(driver), std::move(takeover)); !set_up) {
    return tl::unexpected(set_up.error());
  }
  return agent;
}

Result<void> Agent::SetUp(std::shared_ptr<device::Driver> driver, Takeover takeover) {
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

bool Agent::AddToEpoll(int descriptor, std::uint64_t key, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

Result<void> Agent::Run(int stop) {
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

int Agent::Timeout(Clock::time_point next) const {
  if (!with_lines_.empty()) return 0;  // Their turn comes after a look at the events.
  if (notifier_.watchdog()) next = std::min(next, next_watchdog_);
  if (next == Clock::time_point::max()) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void Agent::TellWatchdog(Clock::time_point now) {
  if (!notifier_.watchdog() || now < next_watchdog_) return;
  notifier_.Tell("WATCHDOG=1");
  next_watchdog_ = now + *notifier_.watchdog();
}

// Takes what epoll says. True: the agent is asked to stop.
bool Agent::ServeOnce() {
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
  for (Outcome& outcome : mailbox_->TakeAll()) service_->Deliver(std::move(outcome), Clock::now());
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
bool Agent::TakeSocketEvents(std::uint64_t id, std::uint32_t events, Session* session) {
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

bool Agent::IsBusy(std::uint64_t id) const {
  return service_->InFlight(id) >= kMaxRequestsInFlight;
}

void Agent::Receive(std::uint64_t id, Session* session) {
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
void Agent::ServeWaiting() {
  for (int work = 0; work < kWorkAtOnce && !with_lines_.empty();) {
    const std::uint64_t id = with_lines_.front();
    with_lines_.pop_front();
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    session->second.waits = false;
    work += ServeLines(id, &session->second);
  }
}

int Agent::ServeLines(std::uint64_t id, Session* session) {
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

void Agent::Send(std::uint64_t id, const Answer& answer) {
  const auto session = sessions_.find(id);
  if (session == sessions_.end() || session->second.end != nullptr) return;
  if (!session->second.connection.Send(FormatAnswer(answer))) {
    session->second.end = "it does not read its answers";
  }
}

void Agent::EndMarked() {
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    const auto current = session++;
    if (current->second.end == nullptr) continue;
    service_->Disconnect(current->first, current->second.end);
    sessions_.erase(current);
  }
}

// Reads on only when what has come is served, so that a client that asks more
// than it waits for is slowed, not the agent.
void Agent::Watch(std::uint64_t id, Session* session) {
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

void Agent::Accept() {
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
Refused Agent::ReasonAgainst(const Peer& peer) const {
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
    return {Refusal::kDenied, fmt::format("user {} has {} connections already, which is the limit",
                                          DescribeUser(peer.uid), of_user)};
  }
  return {};
}

void Agent::Admit(FileDescriptor socket) {
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
  sessions_.emplace(id,
                    Session{Connection(std::move(socket), *std::move(peer)), EPOLLIN | EPOLLRDHUP});
}

}  // namespace perseus::agent
