// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/server_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/unix_socket.h"
#include "http/connection.h"
#include "http/response_head.h"

namespace perseus::http {
namespace {

constexpr std::size_t kScratchBytes = 64 << 10;
constexpr int kAcceptedInTurn = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kReportPause{200};

SteadyClock::duration ToDuration(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(seconds > 0 ? std::min(seconds, 1e6) : 0));
}

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
      is_starting_(!options.starting.empty()) {
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

std::string_view ServerCore::starting() const {
  return is_starting_.load(std::memory_order_acquire) ? std::string_view(options.starting) : "";
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

}  // namespace perseus::http
