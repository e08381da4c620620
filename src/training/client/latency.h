// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_LATENCY_H_
#define PERSEUS_CLIENT_LATENCY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "client/noise_estimate.h"
#include "perseus/client.h"

namespace perseus::client {

// How long clocks took to come into effect, in seconds.
struct LatencyFigures {
  Estimated seconds;         // Median.
  Estimated spread_seconds;  // Standard deviation, of the middle two thirds.
  std::int64_t calls = 0;    // Of which these are; at most the newest 64.
};

// How long clock calls take until the clock is in effect, in nanoseconds: the newest 64 calls, and
// a histogram of all. For one thread.
class LatencyRecord {
 public:
  // Assumed before the first call: 15 ms, as in published measurements.
  static constexpr std::int64_t kUnmeasuredNs = 15'000'000;

  // `call_ns`: duration of the call.
  void AddCall(std::int64_t call_ns);
  // Adds how long after the return of the newest call the clock changed.
  void AddSettling(std::int64_t settling_ns);

  std::int64_t LeastNs() const { return QuantileNs(0); }
  std::int64_t MedianNs() const { return QuantileNs(0.5); }
  std::int64_t HighNs() const { return QuantileNs(0.9); }
  std::int64_t settling_ns() const { return settling_ns_; }
  // None: too few calls.
  std::optional<LatencyFigures> Figures() const;

  const std::array<std::uint64_t, PERSEUS_LATENCY_BUCKETS>& buckets() const { return buckets_; }

 private:
  static constexpr std::size_t kWindow = 64;

  std::int64_t QuantileNs(double share) const;

  std::array<std::int64_t, kWindow> calls_ns_ = {};
  std::size_t count_ = 0;  // Of all calls so far.
  std::int64_t settling_ns_ = 0;
  int settlings_ = 0;
  std::array<std::uint64_t, PERSEUS_LATENCY_BUCKETS> buckets_ = {};
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_LATENCY_H_
