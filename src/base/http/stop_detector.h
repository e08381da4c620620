// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_STOP_DETECTOR_H_
#define PERSEUS_HTTP_STOP_DETECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "common/mutex.h"

namespace perseus::http {

// Detects stops: times in which this process did not run because of SIGSTOP, or because the machine
// stalled or slept. After a stop, clients may have given up on requests that they sent before it. A
// thread notes the time several times a second; a gap between two notes is a stop. Thread-safe,
// except Start() and Stop().
class StopDetector {
 public:
  // Shorter gaps do not count: they also occur on a busy machine.
  static constexpr std::int64_t kShortestNs = 2'000'000'000;

  // Advances also while the process is stopped or the machine sleeps.
  static std::int64_t BootTimeNs();

  explicit StopDetector(std::function<std::int64_t()> now_ns = BootTimeNs);
  ~StopDetector() { Stop(); }
  StopDetector(const StopDetector&) = delete;
  StopDetector& operator=(const StopDetector&) = delete;

  void Start();
  void Stop();

  // Number of stops until now, including one that the thread has not noticed yet.
  std::uint64_t Count();
  // Length of the latest stop.
  double last_seconds() const { return 1e-9 * static_cast<double>(last_ns_.load()); }

  // Notes the time; the thread calls this.
  void Beat();

 private:
  void Note(std::int64_t now_ns);

  const std::function<std::int64_t()> now_ns_;
  std::atomic<std::int64_t> beat_ns_;
  std::atomic<std::int64_t> last_ns_ = 0;
  std::atomic<std::uint64_t> count_ = 0;

  Mutex mutex_;
  ConditionVariable stop_;
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_STOP_DETECTOR_H_
