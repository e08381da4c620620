// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/stop_detector.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "http/worker_pool.h"

namespace perseus::http {
namespace {

constexpr std::chrono::milliseconds kBeat{250};

}  // namespace

std::int64_t StopDetector::BootTimeNs() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

StopDetector::StopDetector(std::function<std::int64_t()> now_ns)
    : now_ns_(std::move(now_ns)), beat_ns_(now_ns_()) {}

void StopDetector::Start() {
  beat_ns_.store(now_ns_());
  thread_ = QuietThread([this] {
    const MutexLock lock(mutex_);
    while (!stopping_) {
      if (stop_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kBeat)) continue;
      const MutexUnlock open_again(mutex_);
      Beat();
    }
  });
}

void StopDetector::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void StopDetector::Beat() {
  std::int64_t before = beat_ns_.load();
  const std::int64_t now = now_ns_();
  if (now - before > kShortestNs) return Note(now);
  // Stopped just here, it notes the time of before, and the gap is seen by the next look.
  beat_ns_.compare_exchange_strong(before, now);
}

std::uint64_t StopDetector::Count() {
  const std::int64_t before = beat_ns_.load();
  const std::int64_t now = now_ns_();
  if (now - before > kShortestNs) Note(now);
  return count_.load();
}

// Once for each gap, whoever sees it.
void StopDetector::Note(std::int64_t now_ns) {
  const MutexLock lock(mutex_);
  const std::int64_t gap = now_ns - beat_ns_.load();
  if (gap <= kShortestNs) return;
  last_ns_.store(gap);
  beat_ns_.store(now_ns);
  ++count_;
}

}  // namespace perseus::http
