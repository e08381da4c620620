// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_MONOTONIC_CLOCK_H_
#define PERSEUS_COMMON_MONOTONIC_CLOCK_H_

#include <cstdint>
#include <ctime>

namespace perseus {

// CLOCK_MONOTONIC in nanoseconds: what all processes of a machine agree on.
inline std::int64_t MonotonicNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace perseus

#endif  // PERSEUS_COMMON_MONOTONIC_CLOCK_H_
