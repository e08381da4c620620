// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_CLOCKS_H_
#define PERSEUS_COMMON_CLOCKS_H_

#include <chrono>
#include <cstdint>
#include <ctime>

namespace perseus {

// Time since the machine was booted. It cannot be set. It also advances while the machine sleeps;
// steady_clock does not.
struct BootClock {
  // NOLINTBEGIN(readability-identifier-naming): names of the standard library.
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)

  static time_point now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

// CLOCK_MONOTONIC in nanoseconds: what all processes of a machine agree on.
inline std::int64_t MonotonicNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace perseus

#endif  // PERSEUS_COMMON_CLOCKS_H_
