// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_WORKER_POOL_H_
#define PERSEUS_HTTP_WORKER_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/mutex.h"

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

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_WORKER_POOL_H_
