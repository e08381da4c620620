// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_STORE_WATCH_H_
#define PERSEUS_SERVER_OPS_STORE_WATCH_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "common/log.h"
#include "store/store.h"

namespace perseus::server {

// Says once that the store no longer takes facts, and once that it does again.
class StoreWatch {
 public:
  explicit StoreWatch(Log* log) : log_(log) {}

  // To be called now and then, by one thread.
  void Look(const store::StoreCounters& now);

  bool is_up() const { return is_up_.load(std::memory_order_relaxed); }

 private:
  Log* const log_;
  std::atomic<bool> is_up_ = true;
  std::uint64_t commits_before_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_STORE_WATCH_H_
