// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_TICKS_H_
#define PERSEUS_CLIENT_TICKS_H_

#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "common/monotonic_clock.h"

namespace perseus::client {

inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// A time counter that the hot path can read without a system call. It is the processor's counter
// if that has the same rate on all cores, else the vDSO's clock. (clock_gettime may be a system
// call if the kernel does not trust the processor's counter.)
class TickSource {
 public:
  TickSource() : counter_(HasSteadyCounter()) {}

  std::uint64_t Now() const {
#if defined(__x86_64__)
    if (counter_) return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return static_cast<std::uint64_t>(MonotonicNs());
  }

 private:
  static bool HasSteadyCounter() {
#if defined(__x86_64__)
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;  // Invariant TSC.
#else
    return true;
#endif
  }

  bool counter_;
};

// Converts ticks to CLOCK_MONOTONIC. The rate is measured since construction, so it becomes more
// exact with time. An event is converted relative to the last Refresh(), so that an error of the
// rate affects only the short time since the event. For one thread.
class TickConverter {
 public:
  explicit TickConverter(TickSource source) : source_(source) {
    ReadBoth();
    first_ticks_ = now_ticks_;
    first_ns_ = now_ns_;
  }

  // Call before a batch of conversions.
  void Refresh() {
    ReadBoth();
    if (now_ticks_ > first_ticks_ && now_ns_ > first_ns_) {
      rate_ =
          static_cast<double>(now_ns_ - first_ns_) / static_cast<double>(now_ticks_ - first_ticks_);
    }
  }

  std::int64_t ToNs(std::uint64_t ticks) const {
    const auto age = static_cast<std::int64_t>(now_ticks_ - ticks);
    return now_ns_ - static_cast<std::int64_t>(static_cast<double>(age) * rate_);
  }

 private:
  // Both at one moment: a thread may lose its core between two reads, so the closest of a few.
  void ReadBoth() {
    constexpr int kTries = 3;
    std::uint64_t closest = std::numeric_limits<std::uint64_t>::max();
    for (int k = 0; k < kTries; ++k) {
      const std::uint64_t before = source_.Now();
      const std::int64_t ns = MonotonicNs();
      const std::uint64_t apart = source_.Now() - before;
      if (apart >= closest) continue;
      closest = apart;
      now_ticks_ = before + apart / 2;
      now_ns_ = ns;
    }
  }

  TickSource source_;
  std::uint64_t first_ticks_ = 0;
  std::int64_t first_ns_ = 0;
  std::uint64_t now_ticks_ = 0;
  std::int64_t now_ns_ = 0;
  double rate_ = 1;  // Nanoseconds a tick.
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_TICKS_H_
