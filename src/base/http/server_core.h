// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_SERVER_CORE_H_
#define PERSEUS_HTTP_SERVER_CORE_H_

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/clocks.h"
#include "common/mutex.h"
#include "http/admission.h"
#include "http/listener.h"
#include "http/transport.h"

namespace perseus::http {

// Starts a thread that blocks all signals, so that the program's other threads receive them.
std::thread QuietThread(std::function<void()> run);

// Runs functions in the order in which they came, several at a time. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();  // Calls Stop().
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Never blocks. After Stop() `f` is dropped. `f` must not throw.
  void Post(std::function<void()> f);

  // Drops waiting functions and waits for running ones. Must not be called from one of them.
  void Stop();

 private:
  void Run();

  Mutex mutex_;
  ConditionVariable filled_;
  std::deque<std::function<void()>> queue_ PERSEUS_GUARDED_BY(mutex_);
  bool stopped_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// Detects stops: times in which this process did not run because of SIGSTOP, or because the machine
// stalled or slept. After a stop, clients may have given up on requests that they sent before it. A
// thread notes the time several times a second; a gap between two notes is a stop. Thread-safe,
// except Start() and Stop().
class StopDetector {
 public:
  // Shorter gaps do not count: they also occur on a busy machine.
  static constexpr std::int64_t kShortestNs = 2'000'000'000;

  // Advances also while the process is stopped or the machine sleeps.
  static std::int64_t BootTimeNs() { return BootClock::now().time_since_epoch().count(); }

  explicit StopDetector(std::function<std::int64_t()> now_ns = BootTimeNs);
  ~StopDetector() { Stop(); }
  StopDetector(const StopDetector&) = delete;
  StopDetector& operator=(const StopDetector&) = delete;

  void Start();
  void Stop();

  // Number of stops until now, including one that the thread has not noticed yet.
  std::uint64_t Count();
  // Length of the latest stop.
  double last_seconds() const { return 1e-9 * static_cast<double>(last_ns_.load()); }

  // Notes the time; the thread calls this.
  void Beat();

 private:
  void Note(std::int64_t now_ns);

  const std::function<std::int64_t()> now_ns_;
  std::atomic<std::int64_t> beat_ns_;
  std::atomic<std::int64_t> last_ns_ = 0;
  std::atomic<std::uint64_t> count_ = 0;

  Mutex mutex_;
  ConditionVariable stop_;
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class Connection;

// How often the deadlines of connections are checked.
inline constexpr std::chrono::milliseconds kTick{250};
// How many refused connections may be open at once to receive their refusal.
inline constexpr std::size_t kRefusalSlots = 64;

// One IO thread and its connections. Connections run only on this thread, so they need no locks.
// Other threads pass work to it with boost::asio::post(context, ...).
struct IoLoop {
  IoLoop();

  // For the thread only.
  const std::string& Date();

  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  boost::asio::steady_timer tick;
  std::thread thread;
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<char> scratch;  // The read buffer of all connections of this thread.
  std::uint64_t stops_seen = 0;

 private:
  std::string date_;
  std::time_t date_time_ = 0;
};

// The running counts behind Counters.
struct AtomicCounters {
  std::atomic<std::uint64_t> connections_now = 0;  // Includes refused connections.
  std::atomic<std::uint64_t> refused_now = 0;
  std::atomic<std::uint64_t> parked_now = 0, streams_now = 0;
  std::atomic<std::uint64_t> body_bytes_now = 0;
  std::atomic<std::uint64_t> accepted = 0, refused_connections = 0;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> status_2xx = 0, status_3xx = 0, status_4xx = 0, status_5xx = 0;
  std::atomic<std::uint64_t> bytes_in = 0, bytes_out = 0;
  std::atomic<std::uint64_t> timed_out = 0, dropped_streams = 0, failed_handshakes = 0;
  std::atomic<std::uint64_t> outdated = 0;

  void CountStatus(int status);
};

// The state that all connections of a server share. Responders may outlive the server, so they hold
// a weak pointer to it.
class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  // `listens_on` has the port that the system chose.
  ServerCore(ServerOptions given, Router routes, Listener listener, ListenAddress listens_on);
  ~ServerCore();

  Result<void> Load();  // Tokens and certificate.
  void Serve();
  void StopAccepting();
  void Stop(double grace_seconds);
  void After(double seconds, std::function<void()> f);
  Counters Snapshot() const;

  void SetRouter(Router router);
  // The router in use. It lives as long as this object, even after SetRouter().
  const Router& router() const { return *router_.load(std::memory_order_acquire); }
  // See ServerOptions::starting; null after SetRouter().
  const std::function<Response()>* starting() const;

  std::shared_ptr<const TokenSet> tokens() const;
  std::optional<TlsContext> tls() const;
  bool is_stopping() const { return stopping_.load(std::memory_order_acquire); }
  void Report(const std::string& sentence);
  void ConnectionClosed(bool was_refused);

  ServerOptions options;
  const ListenAddress address;
  AtomicCounters counters;
  StopDetector stops;
  WorkerPool workers;

 private:
  void AcceptMore();
  void WaitToAccept();
  void PauseAccepting(int error);
  // Decides about a new connection. Null: it is accepted, and `held` must be kept as long as it is
  // open. Else the refusal.
  std::unique_ptr<Response> Judge(int socket, const std::string& peer, std::shared_ptr<void>* held);
  void Welcome(FileDescriptor socket, std::string peer);
  void Tick(IoLoop* loop);
  void LookAfterStop(IoLoop* loop);

  mutable Mutex mutex_;
  ConditionVariable closed_;
  std::shared_ptr<const TokenSet> tokens_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<TlsContext> tls_ PERSEUS_GUARDED_BY(mutex_);
  SteadyClock::time_point last_report_ PERSEUS_GUARDED_BY(mutex_);
  // The last one is in use.
  std::vector<std::unique_ptr<const Router>> routers_ PERSEUS_GUARDED_BY(mutex_);

  std::atomic<const Router*> router_;
  std::atomic<bool> is_starting_;
  std::atomic<bool> stopping_ = false;
  std::once_flag stopped_;
  std::vector<std::unique_ptr<IoLoop>> loops_;
  // Used only by the first loop's thread.
  std::optional<Listener> listener_;
  std::optional<boost::asio::posix::stream_descriptor> accepting_;
  std::optional<boost::asio::steady_timer> accept_pause_;
  std::size_t next_loop_ = 0;
  // Count of stops when last no connection was waiting to be accepted.
  std::uint64_t stops_at_accept_ = 0;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_SERVER_CORE_H_
