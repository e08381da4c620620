// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_STOPWATCH_H_
#define PERSEUS_DEVICE_STOPWATCH_H_

#include <chrono>

namespace perseus::device {

// Measures from where it was made.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  double Seconds() const { return SecondsAt(Clock::now()); }
  double SecondsAt(Clock::time_point time) const {
    return std::chrono::duration<double>(time - start_).count();
  }
  Clock::time_point start() const { return start_; }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_STOPWATCH_H_
