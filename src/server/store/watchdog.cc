// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/watchdog.h"

#include <sys/socket.h>

#include <algorithm>

namespace perseus::store {

Watchdog::Watch::Watch(Watchdog* watchdog, int socket, double seconds)
    : watchdog_(watchdog), socket_(socket) {
  if (socket_ < 0) return;
  const MutexLock lock(watchdog_->mutex_);
  watchdog_->deadlines_[socket_] = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                      std::chrono::duration<double>(seconds));
  if (!watchdog_->thread_.joinable()) {
    watchdog_->thread_ = std::thread([watchdog = watchdog_] { watchdog->ShutDownLateOnes(); });
  }
  watchdog_->wake_.NotifyOne();
}

Watchdog::Watch::~Watch() {
  if (socket_ < 0) return;
  const MutexLock lock(watchdog_->mutex_);
  watchdog_->deadlines_.erase(socket_);
}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::ShutDownLateOnes() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    Clock::time_point next = Clock::time_point::max();
    for (auto entry = deadlines_.begin(); entry != deadlines_.end();) {
      if (Clock::now() < entry->second) {
        next = std::min(next, entry->second);
        ++entry;
        continue;
      }
      // Under the lock: it is not closed meanwhile, nor its number somebody else's.
      ::shutdown(entry->first, SHUT_RDWR);
      entry = deadlines_.erase(entry);
    }
    if (next == Clock::time_point::max()) {
      wake_.Wait(mutex_);
    } else {
      wake_.WaitUntil(mutex_, next);
    }
  }
}

}  // namespace perseus::store
