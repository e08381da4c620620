// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_LATENCY_H_
#define PERSEUS_CLIENT_LATENCY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "client/noise_estimate.h"
#include "perseus/client.h"

namespace perseus::client {

// How long one clock took to come into effect.
struct ClockLatencyFigures {
  int mhz = 0;
  Estimated seconds;       // Median.
  std::int64_t calls = 0;  // As LatencyFigures::calls.
};

// How long clocks took to come into effect, in seconds.
struct LatencyFigures {
  Estimated seconds;  // Median.
  // Standard deviation, of the middle two thirds, with that of settling. Where enough calls for
  // one clock are known: among these, without what clocks differ by.
  Estimated spread_seconds;
  std::int64_t calls = 0;                     // Of which these are; at most the newest 64.
  std::vector<ClockLatencyFigures> of_clock;  // Of all clocks called for, lowest first.
};

// How long clock calls take until the clock is in effect, in nanoseconds: the newest 64 calls, the
// newest 64 for each clock, and a histogram of all. GPUs take longer for some clocks than for
// others (arXiv 2502.20075). For one thread.
class LatencyRecord {
 public:
  // Assumed before the first call: 15 ms, as in published measurements.
  static constexpr std::int64_t kUnmeasuredNs = 15'000'000;

  // A call for `mhz` that took `call_ns`.
  void AddCall(int mhz, std::int64_t call_ns);
  // Adds how long after the return of a call for `mhz` the clock changed.
  void AddSettling(int mhz, std::int64_t settling_ns);

  // The shortest call, and the 90th percentile, of a clock, with what it takes to settle; of all,
  // where too few were for it.
  std::int64_t LeastNs(int mhz) const;
  std::int64_t HighNs(int mhz) const;
  std::int64_t MedianNs() const { return all_.QuantileNs(0.5) + SettlingNs(0); }
  // The mean of a clock; of all, where none was measured for it (0: of no clock).
  std::int64_t SettlingNs(int mhz) const;
  // How often it was measured for a clock.
  int Settlings(int mhz) const;
  // None: too few calls.
  std::optional<LatencyFigures> Figures() const;

  const std::array<std::uint64_t, PERSEUS_LATENCY_BUCKETS>& buckets() const { return buckets_; }

 private:
  // The newest calls.
  struct Window {
    static constexpr std::size_t kSize = 64;

    std::array<std::int64_t, kSize> calls_ns = {};
    std::size_t count = 0;  // Of all calls so far.
    std::int64_t least_ns = kUnmeasuredNs;
    std::int64_t high_ns = kUnmeasuredNs;
    // Of the clock settling, nanoseconds.
    int settlings = 0;
    double settling_mean = 0;
    double settling_squares = 0;  // Sum of squares of what is apart from the mean.

    void Add(std::int64_t call_ns);
    void AddSettling(std::int64_t settling_ns);
    std::size_t size() const;
    std::int64_t QuantileNs(double share) const;
    // Standard deviation of the middle two thirds.
    double SpreadSeconds() const;
  };

  const Window& OfClock(int mhz) const;
  // `spread_seconds`: of its calls.
  Estimated MedianSeconds(int mhz, const Window& window, double spread_seconds) const;

  Window all_;
  std::map<int, Window> of_clock_;
  // Standard deviation among settlings to one clock; none: too few.
  std::optional<double> settling_spread_ns_;
  std::array<std::uint64_t, PERSEUS_LATENCY_BUCKETS> buckets_ = {};
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_LATENCY_H_
