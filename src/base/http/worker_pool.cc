// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/worker_pool.h"

#include <utility>

#include "common/signal_hold.h"

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

}  // namespace perseus::http
