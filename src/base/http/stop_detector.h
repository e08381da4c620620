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

// Notices that this process did not run for a while: SIGSTOP, a machine that stalled or was
// asleep. What was asked before such a stop may be long forgotten by who asked. A thread
// notes the time several times a second; a gap between two notes is a stop. Thread-safe,
// but for Start() and Stop().
class StopDetector {
 public:
  // Shorter ones are not told from a machine that is busy.
  static constexpr std::int64_t kShortestNs = 2'000'000'000;

  // Goes on while the process, or the machine, does not.
  static std::int64_t BootTimeNs();

  explicit StopDetector(std::function<std::int64_t()> now_ns = BootTimeNs);
  ~StopDetector() { Stop(); }
  StopDetector(const StopDetector&) = delete;
  StopDetector& operator=(const StopDetector&) = delete;

  void Start();
  void Stop();

  // How many stops there were until now, also where the thread has not run since.
  std::uint64_t Count();
  // Of the latest stop.
  double last_seconds() const { return 1e-9 * static_cast<double>(last_ns_.load()); }

  // What the thread does.
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
