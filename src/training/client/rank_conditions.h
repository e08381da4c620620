// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_RANK_CONDITIONS_H_
#define PERSEUS_CLIENT_RANK_CONDITIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "perseus/client.h"
#include "wire/reports.h"

namespace perseus::client {

using Estimated = wire::RankFigure;

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

// The noise in the times of a rank's computations. Variances are relative to the time (1e-4 = (1
// %)^2) and without bias: below 0 where there is too little noise to tell.
struct NoiseFigures {
  Estimated variance;                    // Drawn for each computation,
  Estimated rank_variance;               // and for all of an iteration together.
  std::optional<Estimated> correlation;  // From one computation to the next; none: not to be told.
  // The variance added by the few computations that take much longer (or shorter), and their share
  // of all; not in `variance`. A deviation counts up to a fifth of the time: a pause is no noise.
  Estimated rare_variance;
  Estimated rare_share;
  std::int64_t iterations = 0;
  std::int64_t computations = 0;
};

// Estimates the noise of a rank's computations from their times. Compares each computation with the
// same one of the iteration before, so neither the work of each nor slow drift counts as noise. The
// products of such differences at several distances within an iteration tell apart what each
// computation draws, what follows from one to the next, and what all share. Computations that stand
// out are in none of these three. Iterations that stand out (a checkpoint, a straggler that begins)
// are left out. For one thread.
class NoiseEstimate {
 public:
  // A computation whose clock was in effect from its begin to its end.
  struct Time {
    std::ptrdiff_t row = 0;  // Of the plan.
    int mhz = 0;
    double ns = 0;
  };

  // Takes the times of one iteration, ascending by row.
  void AddIteration(std::int64_t iteration, std::int64_t plan_version, std::vector<Time> times);
  // Of the newest iterations; none: too few.
  std::optional<NoiseFigures> Figures() const;

 private:
  static constexpr std::array kLags = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
  static constexpr std::size_t kMostPairs = 128;
  static constexpr std::size_t kMostRows = 4096;

  // Sums of products of two differences, by kLags.
  struct Moments {
    std::array<double, kLags.size()> sums = {};
    std::array<double, kLags.size()> counts = {};

    void Add(const Moments& other, double sign);
  };
  // Two iterations, one after the other.
  struct Pair {
    Moments moments;
    double rare = 0;         // Sum of squares of the differences that stand out,
    double rare_count = 0;   // and how many these are.
    double differences = 0;  // All.
    double median = 0;
    double scale = 0;  // Of the differences around their median.
  };
  struct Fit {
    double variance = 0;
    double rank_variance = 0;
    double correlation = 0;
  };

  void AddPair(const std::vector<Time>& first, const std::vector<Time>& second);
  static Fit FitOf(const Moments& moments);
  static Fit FitAt(const Moments& moments, double correlation, double* residual);

  std::int64_t iteration_ = 0;
  std::int64_t plan_version_ = 0;
  std::vector<Time> before_;  // Of iteration_; empty: none that the next can be compared with.
  std::deque<Pair> pairs_;
};

// Under what conditions a rank trains: its noise, and how late its clocks come. Each is none until
// there is enough to tell.
struct RankConditions {
  std::optional<NoiseFigures> noise;
  std::optional<LatencyFigures> latency;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_RANK_CONDITIONS_H_
