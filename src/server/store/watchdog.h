// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_WATCHDOG_H_
#define PERSEUS_SERVER_STORE_WATCHDOG_H_

#include <chrono>
#include <map>
#include <thread>

#include "common/mutex.h"

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

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_WATCHDOG_H_
