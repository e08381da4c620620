// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_LINK_H_
#define PERSEUS_STORE_LINK_H_

#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "perseus/result.h"
#include "store/backend.h"
#include "store/watchdog.h"

namespace perseus::store {

// Without a database, what waits for it is answered with an error after these.
inline constexpr double kWaitSeconds = 5;

// Why a transaction did not come to its end.
struct Failure {
  FaultKind kind = FaultKind::kFailed;
  // The connection went while the end was on its way: it may be written or not.
  bool is_unknown = false;
  Error error;
};

// One connection, opened again when it was lost. Thread-safe: one transaction at
// a time.
class Link {
 public:
  using Work = std::function<void(soci::session& sql)>;

  // `watchdog` outlives it.
  Link(std::shared_ptr<const Backend> backend, Watchdog* watchdog)
      : backend_(std::move(backend)), watchdog_(watchdog) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Runs `begin`, `work`, which may throw what SOCI throws, and COMMIT; takes no
  // longer than about `seconds` where the database is a server. nullopt: all went well.
  std::optional<Failure> Try(const std::string& begin, double seconds, const Work& work);

  // The same, tried again while the connection is lost or another transaction in
  // the way, for kWaitSeconds. `work` may be run more than once, and also after an end
  // that is unknown.
  Result<void> Run(const std::string& begin, double seconds, const Work& work);

  // Asked while it waits for a connection; false: it gives up. Not while others use the link.
  void SetKeepGoing(std::function<bool()> keep_going) { keep_going_ = std::move(keep_going); }

  // Without a connection for longer than kWaitSeconds: who comes now does not wait.
  bool IsAway();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    std::unique_ptr<soci::session> session = {};
    Fault fault = {};  // Where there is none.
  };

  std::optional<Failure> TryOnce(const std::string& begin, double seconds, const Work& work)
      PERSEUS_REQUIRES(mutex_);
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
  std::optional<Clock::time_point> lost_since_ PERSEUS_GUARDED_BY(mutex_);
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

#endif  // PERSEUS_STORE_LINK_H_
