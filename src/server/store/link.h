// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_LINK_H_
#define PERSEUS_SERVER_STORE_LINK_H_

#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/mutex.h"
#include "perseus/result.h"
#include "server/store/backend.h"

namespace perseus::store {

// Shuts down sockets on which a call has waited for too long, so that the call returns with an
// error. libpq has no time limit of its own if a database hangs while its machine still answers.
// Thread-safe. Its thread starts with the first socket.
class Watchdog {
 public:
  // Watches a socket as long as it lives. The socket must stay open that long.
  class Watch {
   public:
    Watch(Watchdog* watchdog, int socket, double seconds);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Watchdog* const watchdog_;
    const int socket_;
  };

  Watchdog() = default;
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  void ShutDownLateOnes();

  Mutex mutex_;
  ConditionVariable wake_;
  std::map<int, Clock::time_point> deadlines_ PERSEUS_GUARDED_BY(mutex_);  // By socket.
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::thread thread_ PERSEUS_GUARDED_BY(mutex_);
};

// While there is no connection, calls wait this long for one and then fail.
inline constexpr double kWaitSeconds = 5;

// Why a transaction failed.
struct Failure {
  FaultKind kind = FaultKind::kFailed;
  // The connection broke during COMMIT, so it is not known whether the transaction was written.
  bool is_unknown = false;
  Error error;
};

// One connection to the database, which is opened again when it was lost. Runs one transaction at a
// time. Thread-safe.
class Link {
 public:
  using Work = std::function<void(soci::session& sql)>;

  // `watchdog` must outlive this object.
  Link(std::shared_ptr<const Backend> backend, Watchdog* watchdog)
      : backend_(std::move(backend)), watchdog_(watchdog) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Runs `begin`, `work` and COMMIT. `work` may throw as SOCI does. If the database is a server,
  // this takes no longer than about `seconds`. Returns nullopt on success.
  std::optional<Failure> Try(const std::string& begin, double seconds, const Work& work);

  // The same, but tries again for kWaitSeconds while there is no connection or another transaction
  // is in the way.
  std::optional<Failure> Run(const std::string& begin, double seconds, const Work& work);

  // Sets a function that is called during a wait for a connection; false ends the wait. Call this
  // while no other thread uses the link.
  void SetKeepGoing(std::function<bool()> keep_going) { keep_going_ = std::move(keep_going); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    std::unique_ptr<soci::session> session = {};
    Fault fault = {};  // Why session is null.
  };

  std::unique_ptr<soci::session> Connect() PERSEUS_REQUIRES(mutex_);
  bool WaitForConnection() PERSEUS_REQUIRES(mutex_);
  void RollBack() PERSEUS_REQUIRES(mutex_);

  const std::shared_ptr<const Backend> backend_;
  Watchdog* const watchdog_;
  std::function<bool()> keep_going_;
  Mutex mutex_;
  std::unique_ptr<soci::session> session_ PERSEUS_GUARDED_BY(mutex_);
  // A connection that took too long; it may come yet.
  std::future<Connection> connecting_ PERSEUS_GUARDED_BY(mutex_);
};

// How long to wait before the next try: doubles up to a limit.
class Backoff {
 public:
  std::chrono::milliseconds Next() {
    const auto now = next_;
    next_ = std::min(next_ * 2, kMost);
    return now;
  }

 private:
  static constexpr std::chrono::milliseconds kMost{2000};
  std::chrono::milliseconds next_{50};
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_LINK_H_
