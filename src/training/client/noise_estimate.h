// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_NOISE_ESTIMATE_H_
#define PERSEUS_CLIENT_NOISE_ESTIMATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace perseus::client {

struct Estimated {
  double value = 0;
  double error = 0;  // Standard error.
};

// What the times of a rank's computations say of noise. Variances are relative to the time
// (1e-4 = (1 %)^2) and without bias: below 0 where there is too little noise to tell.
struct NoiseFigures {
  Estimated variance;                    // Drawn for each computation,
  Estimated rank_variance;               // and for all of an iteration together.
  std::optional<Estimated> correlation;  // From one computation to the next; none: not to be told.
  // What computations add that now and then take much longer (or shorter), and how many of all
  // these are; not in `variance`. What one is off counts up to a fifth of its time: a pause is no
  // noise.
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

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_NOISE_ESTIMATE_H_
