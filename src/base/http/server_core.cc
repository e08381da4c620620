// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/server_core.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "common/signal_hold.h"
#include "common/unix_socket.h"
#include "http/admission.h"
#include "http/connection.h"
#include "http/listener.h"
#include "http/message.h"

namespace perseus::http {

std::thread QuietThread(std::function<void()> run) {
  const SignalsBlocked blocked;
  return std::thread(std::move(run));
}

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(QuietThread([this] { Run(); }));
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Post(std::function<void()> f) {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    queue_.push_back(std::move(f));
  }
  filled_.NotifyOne();
}

void WorkerPool::Stop() {
  std::deque<std::function<void()>> dropped;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    dropped.swap(queue_);
  }
  filled_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::Run() {
  for (;;) {
    std::function<void()> f;
    {
      const MutexLock lock(mutex_);
      while (!stopped_ && queue_.empty()) filled_.Wait(mutex_);
      if (stopped_) return;
      f = std::move(queue_.front());
      queue_.pop_front();
    }
    f();
  }
}

namespace {

constexpr std::chrono::milliseconds kBeat{250};

}  // namespace

StopDetector::StopDetector(std::function<std::int64_t()> now_ns)
    : now_ns_(std::move(now_ns)), beat_ns_(now_ns_()) {}

void StopDetector::Start() {
  beat_ns_.store(now_ns_());
  thread_ = QuietThread([this] {
    const MutexLock lock(mutex_);
    while (!stopping_) {
      if (stop_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kBeat)) continue;
      const MutexUnlock open_again(mutex_);
      Beat();
    }
  });
}

void StopDetector::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void StopDetector::Beat() {
  std::int64_t before = beat_ns_.load();
  const std::int64_t now = now_ns_();
  if (now - before > kShortestNs) return Note(now);
  // Stopped just here, it notes the time of before, and the gap is seen by the next look.
  beat_ns_.compare_exchange_strong(before, now);
}

std::uint64_t StopDetector::Count() {
  const std::int64_t before = beat_ns_.load();
  const std::int64_t now = now_ns_();
  if (now - before > kShortestNs) Note(now);
  return count_.load();
}

// Once for each gap, whoever sees it.
void StopDetector::Note(std::int64_t now_ns) {
  const MutexLock lock(mutex_);
  const std::int64_t gap = now_ns - beat_ns_.load();
  if (gap <= kShortestNs) return;
  last_ns_.store(gap);
  beat_ns_.store(now_ns);
  ++count_;
}

namespace {

constexpr std::size_t kScratchBytes = 64 << 10;
constexpr int kAcceptedInTurn = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kReportPause{200};

}  // namespace

IoLoop::IoLoop() : work(context.get_executor()), tick(context), scratch(kScratchBytes) {}

const std::string& IoLoop::Date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_time_) {
    date_time_ = now;
    date_ = HttpDate(now);
  }
  return date_;
}

void AtomicCounters::CountStatus(int status) {
  ++(status < 300   ? status_2xx
     : status < 400 ? status_3xx
     : status < 500 ? status_4xx
                    : status_5xx);
}

ServerCore::ServerCore(ServerOptions given, Router routes, Listener listener,
                       ListenAddress listens_on)
    : options(std::move(given)),
      address(std::move(listens_on)),
      workers(options.worker_threads),
      is_starting_(options.starting != nullptr) {
  routers_.push_back(std::make_unique<const Router>(std::move(routes)));
  router_.store(routers_.back().get());
  for (int i = 0; i < options.io_threads; ++i) loops_.push_back(std::make_unique<IoLoop>());
  listener_.emplace(std::move(listener));
}

ServerCore::~ServerCore() { Stop(0); }

Result<void> ServerCore::Load() {
  std::shared_ptr<const TokenSet> tokens;
  std::optional<TlsContext> tls;
  if (!options.token_file.empty()) {
    Result<TokenSet> loaded = TokenSet::Load(options.token_file);
    if (!loaded) return tl::unexpected(loaded.error());
    tokens = std::make_shared<const TokenSet>(*std::move(loaded));
  }
  if (!options.tls_certificate_file.empty()) {
    Result<TlsContext> loaded =
        TlsContext::ForServer(options.tls_certificate_file, options.tls_key_file);
    if (!loaded) return tl::unexpected(loaded.error());
    tls = *std::move(loaded);
  }
  const MutexLock lock(mutex_);
  tokens_ = std::move(tokens);
  tls_ = std::move(tls);
  return {};
}

void ServerCore::SetRouter(Router router) {
  const MutexLock lock(mutex_);
  routers_.push_back(std::make_unique<const Router>(std::move(router)));
  router_.store(routers_.back().get(), std::memory_order_release);
  is_starting_.store(false, std::memory_order_release);
}

const std::function<Response()>* ServerCore::starting() const {
  return is_starting_.load(std::memory_order_acquire) ? &options.starting : nullptr;
}

std::shared_ptr<const TokenSet> ServerCore::tokens() const {
  const MutexLock lock(mutex_);
  return tokens_;
}

std::optional<TlsContext> ServerCore::tls() const {
  const MutexLock lock(mutex_);
  return tls_;
}

void ServerCore::Report(const std::string& sentence) {
  if (!options.on_problem) return;
  {
    const MutexLock lock(mutex_);
    const SteadyClock::time_point now = SteadyClock::now();
    if (now - last_report_ < kReportPause) return;
    last_report_ = now;
  }
  options.on_problem(sentence);
}

void ServerCore::Serve() {
  IoLoop& first = *loops_.front();
  accepting_.emplace(first.context, listener_->descriptor());
  accept_pause_.emplace(first.context);
  stops.Start();
  WaitToAccept();
  for (const std::unique_ptr<IoLoop>& loop : loops_) {
    Tick(loop.get());
    loop->thread = QuietThread([context = &loop->context] { context->run(); });
  }
}

void ServerCore::Tick(IoLoop* loop) {
  loop->tick.expires_after(kTick);
  loop->tick.async_wait([this, loop](const boost::system::error_code& error) {
    if (error) return;
    LookAfterStop(loop);
    const SteadyClock::time_point now = SteadyClock::now();
    // Backwards: the last one takes the place of one that closes.
    for (std::size_t i = loop->connections.size(); i-- > 0;) {
      const std::shared_ptr<Connection> connection = loop->connections[i];
      connection->OnTick(now);
    }
    Tick(loop);
  });
}

// Notes sockets without input: requests that come there later were not sent before the stop.
void ServerCore::LookAfterStop(IoLoop* loop) {
  const std::uint64_t count = stops.Count();
  if (count == loop->stops_seen) return;
  loop->stops_seen = count;
  for (const std::shared_ptr<Connection>& connection : loop->connections) {
    connection->LookAfterStop(count);
  }
  if (loop != loops_.front().get()) return;
  if (listener_ && !HasInput(listener_->descriptor())) stops_at_accept_ = count;
  Report(
      fmt::format("The process did not run for {:.1f} s; changes that were asked for before "
                  "are answered 503.",
                  stops.last_seconds()));
}

void ServerCore::WaitToAccept() {
  accepting_->async_wait(boost::asio::posix::descriptor_base::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (!error && listener_) AcceptMore();
                         });
}

void ServerCore::AcceptMore() {
  for (int i = 0; i < kAcceptedInTurn; ++i) {
    std::string peer;
    const std::uint64_t stops_before = stops.Count();
    FileDescriptor socket = listener_->Accept(&peer);
    if (socket.valid()) {
      Welcome(std::move(socket), std::move(peer));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      stops_at_accept_ = stops_before;
      break;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return PauseAccepting(errno);
    }
    // Others concern the one connection that was to be accepted.
  }
  WaitToAccept();
}

void ServerCore::PauseAccepting(int error) {
  Report(fmt::format("No connection can be accepted now: {}.", SystemMessage(error)));
  accept_pause_->expires_after(kAcceptPause);
  accept_pause_->async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled && listener_) AcceptMore();
  });
}

std::unique_ptr<Response> ServerCore::Judge(int socket, const std::string& peer,
                                            std::shared_ptr<void>* held) {
  // Those who are refused take no place from others.
  if (counters.connections_now.load() - counters.refused_now.load() >= options.max_connections) {
    return std::make_unique<Response>(
        TryAgainResponse("The server has too many connections; try again soon."));
  }
  if (!options.admit_peer || peer != "unix") return nullptr;
  Result<std::shared_ptr<void>> admitted = options.admit_peer(socket);
  if (admitted) {
    *held = *std::move(admitted);
    return nullptr;
  }
  return std::make_unique<Response>(
      admitted.error().code == ErrorCode::kDenied
          ? ErrorResponse(403, ErrorCodeOf(403), admitted.error().message)
          : TryAgainResponse(admitted.error().message));
}

void ServerCore::Welcome(FileDescriptor socket, std::string peer) {
  ++counters.accepted;
  std::shared_ptr<void> held;
  std::unique_ptr<Response> refusal = Judge(socket.get(), peer, &held);
  std::optional<std::uint32_t> peer_uid;
  if (peer == "unix") {
    if (const auto process = PeerOfUnixSocket(socket.get())) peer_uid = process->uid;
  }
  ++counters.connections_now;
  const bool is_refused = refusal != nullptr;
  if (is_refused) {
    ++counters.refused_connections;
    if (counters.refused_now.fetch_add(1) >= kRefusalSlots) return ConnectionClosed(is_refused);
  }
  IoLoop* loop = loops_[next_loop_++ % loops_.size()].get();
  boost::asio::post(loop->context, [this, loop, is_refused, socket = std::move(socket),
                                    peer = std::move(peer), refusal = std::move(refusal),
                                    held = std::move(held), stops = stops_at_accept_,
                                    peer_uid]() mutable {
    const std::optional<TlsContext> tls_context = tls();
    std::unique_ptr<Transport> transport =
        tls_context ? tls_context->Accept(std::move(socket)) : PlainTransport(std::move(socket));
    if (!transport || is_stopping()) return ConnectionClosed(is_refused);
    try {
      Connection::Origin origin = {std::move(peer), std::move(refusal), std::move(held), stops,
                                   peer_uid};
      std::make_shared<Connection>(this, loop, std::move(transport), std::move(origin))->Start();
    } catch (const boost::system::system_error& error) {
      Report(fmt::format("A connection cannot be watched: {}.", error.what()));
      ConnectionClosed(is_refused);
    }
  });
}

void ServerCore::ConnectionClosed(bool was_refused) {
  if (was_refused) --counters.refused_now;
  if (counters.connections_now.fetch_sub(1) != 1 || !is_stopping()) return;
  // Under the lock, or Stop() could look before and wait after.
  const MutexLock lock(mutex_);
  closed_.NotifyAll();
}

void ServerCore::After(double seconds, std::function<void()> f) {
  auto timer =
      std::make_shared<boost::asio::steady_timer>(loops_.front()->context, ToDuration(seconds));
  timer->async_wait(
      [this, timer, f = std::move(f)](const boost::system::error_code& error) mutable {
        if (!error) workers.Post(std::move(f));
      });
}

void ServerCore::StopAccepting() {
  boost::asio::post(loops_.front()->context, [this] {
    if (accepting_) accepting_->release();
    if (accept_pause_) accept_pause_->cancel();
    listener_.reset();
  });
}

void ServerCore::Stop(double grace_seconds) {
  std::call_once(stopped_, [&] {
    StopAccepting();
    stopping_.store(true, std::memory_order_release);
    stops.Stop();
    const bool is_serving = loops_.front()->thread.joinable();
    for (const std::unique_ptr<IoLoop>& loop : loops_) {
      boost::asio::post(loop->context, [loop = loop.get()] {
        for (std::size_t i = loop->connections.size(); i-- > 0;) {
          const std::shared_ptr<Connection> connection = loop->connections[i];
          connection->BeginStop();
        }
      });
    }
    if (is_serving) {
      const auto until = SteadyClock::now() + ToDuration(grace_seconds);
      const MutexLock lock(mutex_);
      while (counters.connections_now.load() != 0 && closed_.WaitUntil(mutex_, until)) {
      }
    }
    workers.Stop();
    for (const std::unique_ptr<IoLoop>& loop : loops_) {
      loop->work.reset();
      loop->context.stop();
      if (loop->thread.joinable()) loop->thread.join();
      while (!loop->connections.empty()) {
        const std::shared_ptr<Connection> connection = loop->connections.back();
        connection->Close();
      }
    }
    // Release it here if the first loop ended before it could.
    if (accepting_ && accepting_->is_open()) accepting_->release();
    listener_.reset();
  });
}

Counters ServerCore::Snapshot() const {
  Counters now;
  now.connections_now = counters.connections_now;
  now.parked_now = counters.parked_now;
  now.streams_now = counters.streams_now;
  now.body_bytes_now = counters.body_bytes_now;
  now.accepted = counters.accepted;
  now.refused_connections = counters.refused_connections;
  now.requests = counters.requests;
  now.status_2xx = counters.status_2xx;
  now.status_3xx = counters.status_3xx;
  now.status_4xx = counters.status_4xx;
  now.status_5xx = counters.status_5xx;
  now.bytes_in = counters.bytes_in;
  now.bytes_out = counters.bytes_out;
  now.timed_out = counters.timed_out;
  now.dropped_streams = counters.dropped_streams;
  now.failed_handshakes = counters.failed_handshakes;
  now.outdated = counters.outdated;
  return now;
}

namespace {

// For everything but connections: a database, libraries, a log.
constexpr std::size_t kOtherFiles = 256;

Result<void> CheckLimits(const ServerOptions& options) {
  struct Limit {
    const char* name;
    double value, least, most;
  };
  const std::array limits = {
      Limit{"max_connections", static_cast<double>(options.max_connections), 1, 1e6},
      Limit{"max_header_bytes", static_cast<double>(options.max_header_bytes), 1024, 1 << 20},
      Limit{"idle_seconds", options.idle_seconds, 0.01, 1e6},
      Limit{"header_seconds", options.header_seconds, 0.01, 1e6},
      Limit{"body_seconds", options.body_seconds, 0.01, 1e6},
      Limit{"write_seconds", options.write_seconds, 0.01, 1e6},
      Limit{"min_write_bytes_per_second", options.min_write_bytes_per_second, 1, 1e12},
      Limit{"heartbeat_seconds", options.heartbeat_seconds, 0.01, 1e6},
      Limit{"io_threads", static_cast<double>(options.io_threads), 1, 64},
      Limit{"worker_threads", static_cast<double>(options.worker_threads), 1, 256},
  };
  for (const Limit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return InvalidInput(fmt::format("The server's {} is {}, but has to be {} to {}.", limit.name,
                                    limit.value, limit.least, limit.most));
  }
  return {};
}

Result<void> CheckSafety(const ServerOptions& options, const ListenAddress& address) {
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty()) {
    return InvalidInput(fmt::format(
        "TLS needs both files, but there is no {}.",
        options.tls_key_file.empty() ? "key: set --tls-key" : "certificate: set --tls-cert"));
  }
  constexpr int kOthers = 077;
  if (!address.unix_path.empty() && (options.unix_mode & kOthers) != 0 && !options.admit_peer &&
      options.token_file.empty()) {
    return InvalidInput(fmt::format(
        "Others than their owner may open {}, so it needs tokens or a list of who may connect.",
        address.unix_path));
  }
  if (address.is_local) return {};
  const bool lacks_tls = options.tls_certificate_file.empty();
  const bool lacks_tokens = options.token_file.empty();
  if (!lacks_tls && !lacks_tokens) return {};
  return InvalidInput(fmt::format(
      "Others than this machine can reach {}, so it needs TLS and tokens: set {}, or listen on "
      "127.0.0.1.",
      options.listen,
      lacks_tls && lacks_tokens ? "--tls-cert, --tls-key and --token-file"
      : lacks_tls               ? "--tls-cert and --tls-key"
                                : "--token-file"));
}

// Raises the limit of open files for that many connections; how many there is room for.
std::size_t MakeRoomFor(std::size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t wanted = connections + kRefusalSlots + kOtherFiles;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted) {
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY ? wanted : std::min<rlim_t>(wanted, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) return connections;
  const rlim_t others = std::min<rlim_t>(kRefusalSlots + kOtherFiles, limit.rlim_cur / 2);
  return std::max<std::size_t>(1, limit.rlim_cur - others);
}

}  // namespace

Server::Server(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}
Server::~Server() { core_->Stop(0); }

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options, std::vector<Route> routes) {
  Result<ListenAddress> address = ParseListenAddress(options.listen);
  if (!address) return tl::unexpected(address.error());
  Result<void> checked = CheckLimits(options);
  if (checked) checked = CheckSafety(options, *address);
  if (!checked) return tl::unexpected(checked.error());
  Result<Router> router = Router::Make(std::move(routes));
  if (!router) return tl::unexpected(router.error());
  Result<Listener> listener = Listener::Open(*address, options.unix_mode);
  if (!listener) return tl::unexpected(listener.error());
  address->port = listener->port();
  options.max_connections = MakeRoomFor(options.max_connections);
  auto core = std::make_shared<ServerCore>(std::move(options), *std::move(router),
                                           *std::move(listener), *std::move(address));
  const Result<void> loaded = core->Load();
  if (!loaded) return tl::unexpected(loaded.error());
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

void Server::Serve() { core_->Serve(); }
Result<void> Server::SetRoutes(std::vector<Route> routes) {
  Result<Router> router = Router::Make(std::move(routes));
  if (!router) return tl::unexpected(router.error());
  core_->SetRouter(*std::move(router));
  return {};
}
int Server::port() const { return core_->address.port; }
std::string Server::url() const {
  const ListenAddress& address = core_->address;
  if (!address.unix_path.empty()) return "unix:" + address.unix_path;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", core_->tls() ? "https" : "http", is_v6 ? "[" : "",
                     address.host, is_v6 ? "]" : "", address.port);
}
std::size_t Server::max_connections() const { return core_->options.max_connections; }
Result<void> Server::Reload() { return core_->Load(); }
void Server::StopAccepting() { core_->StopAccepting(); }
void Server::Stop(double grace_seconds) { core_->Stop(grace_seconds); }
void Server::Post(std::function<void()> f) { core_->workers.Post(std::move(f)); }
void Server::After(double seconds, std::function<void()> f) { core_->After(seconds, std::move(f)); }
Counters Server::counters() const { return core_->Snapshot(); }

std::optional<double> Server::certificate_expires_at_seconds() const {
  const std::optional<TlsContext> tls = core_->tls();
  if (!tls) return std::nullopt;
  return tls->expires_at_seconds();
}

}  // namespace perseus::http
