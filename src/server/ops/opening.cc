// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/opening.h"

#include <sys/eventfd.h>

#include <utility>

#include "server/base/without_throwing.h"

namespace perseus::server {
Opening::Opening() : ended_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Opening::~Opening() {
  if (thread_.joinable()) thread_.join();
}

void Opening::Start(std::function<Result<void>()> work) {
  thread_ = std::thread([this, work = std::move(work)] {
    Result<void> result = WithoutThrowing("start", work);
    {
      const MutexLock lock(mutex_);
      outcome_ = std::move(result);
    }
    changed_.NotifyAll();
    ::eventfd_write(ended_event_.get(), 1);
  });
}

void Opening::Say(std::string sentence) {
  const MutexLock lock(mutex_);
  sentence_ = std::move(sentence);
}

std::string Opening::sentence() const {
  const MutexLock lock(mutex_);
  return sentence_;
}

bool Opening::keeps_going() const {
  const MutexLock lock(mutex_);
  return !cancelled_;
}

void Opening::Cancel() {
  {
    const MutexLock lock(mutex_);
    cancelled_ = true;
  }
  changed_.NotifyAll();
}

std::optional<Result<void>> Opening::outcome() const {
  const MutexLock lock(mutex_);
  return outcome_;
}

bool Opening::WaitForEnd(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (!outcome_ && changed_.WaitUntil(mutex_, until)) {
  }
  return outcome_.has_value();
}

}  // namespace perseus::server
