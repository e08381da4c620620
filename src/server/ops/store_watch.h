// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_STORE_WATCH_H_
#define PERSEUS_SERVER_OPS_STORE_WATCH_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "common/log.h"
#include "server/runtime/events.h"
#include "server/store/store.h"

namespace perseus::server {

// Logs once when the store stops taking writes, and once when it takes them again.
class StoreWatch {
 public:
  explicit StoreWatch(Log* log) : log_(log) {}

  // Call this regularly, from one thread. Returns the news of a change.
  std::optional<Event> Look(const store::StoreCounters& now);

  bool is_up() const { return is_up_.load(std::memory_order_relaxed); }

 private:
  Log* const log_;
  std::atomic<bool> is_up_ = true;
  std::uint64_t commits_before_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_STORE_WATCH_H_
