// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_REALISED_SAVINGS_H_
#define PERSEUS_SERVER_WATCH_REALISED_SAVINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/comparison_blocks.h"

namespace perseus::server {

// Quantile of Student's t distribution for a two-sided 95 % interval, to 1e-3. `freedom` (degrees
// of freedom) >= 1.
double StudentT95(std::int64_t freedom);

// A share with its 95 % confidence interval: 0.03 is 3 %.
struct ShareEstimate {
  double share = 0;
  double least = 0;
  double most = 0;
};

// Count, mean and variance of a series of numbers (Welford's algorithm).
class RunningMean {
 public:
  void Add(double value);
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Half the width of the 95 % t-interval. Needs at least two numbers.
  double HalfInterval() const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// One version of the plan compared with maximum clocks.
struct Realised {
  std::int64_t plan_version = 0;
  std::int64_t pairs = 0;         // Pairs of stretches that were compared by time.
  std::int64_t energy_pairs = 0;  // Pairs that were compared by energy.
  double with_seconds = 0;        // Mean iteration time with the plan; without: at maximum clocks.
  double without_seconds = 0;
  double with_joules = 0;  // Of one GPU. 0: GPUs report no energy.
  double without_joules = 0;
  std::optional<ShareEstimate> slowdown = {};  // Of iteration time. None below kLeastPairs pairs.
  std::optional<ShareEstimate> saving = {};    // Of energy. None below kLeastPairs pairs.
};

// One complete iteration of a job.
struct ComparedIteration {
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;  // 0: the iteration ran at maximum clocks.
  bool is_known = false;          // All ranks reported that they ran this version.
  int ranks = 0;
  double seconds = 0;  // Maximum over the ranks.
  int energy_ranks = 0;
  double joules = 0;  // Mean over energy_ranks.
};

// Compares stretches of iterations under the plan with stretches at maximum clocks. Each cycle of
// ComparisonBlocks has one stretch of each, in random order. Not thread-safe.
//
// One cycle gives one pair of means: with the plan and without. The first iteration of a stretch,
// in which clocks settle, is left out. The logarithm of the ratio of the two means is one sample;
// the confidence interval is Student's t over the samples. Noise that lasts a few iterations
// averages out within the means. Longer noise hits the pairs with random signs, because the order
// within a cycle is random, so that samples do not correlate. A cycle is dropped if the plan
// changed in it, iterations are missing, or a rank ran at other clocks. A cycle counts for energy
// only if nine tenths of its ranks reported their energy in each iteration.
class RealisedSavings {
 public:
  static constexpr std::int64_t kLeastPairs = 3;
  static constexpr std::size_t kMostVersions = 16;

  // Starts again from nothing if the blocks changed.
  void Set(const ComparisonBlocks& blocks);
  const ComparisonBlocks& blocks() const { return blocks_; }

  // Adds an iteration; call it in ascending order. If that completes a pair, returns the version
  // whose figures changed.
  std::optional<std::int64_t> Add(const ComparedIteration& iteration);

  std::optional<Realised> Of(std::int64_t plan_version) const;
  std::vector<Realised> All() const;  // By version.
  std::int64_t dropped_cycles() const { return dropped_; }

 private:
  struct Stretch {
    int iterations = 0;
    int energy_iterations = 0;
    double seconds = 0;
    double joules = 0;
  };
  struct Cycle {
    std::int64_t number = 0;
    bool is_good = true;
    std::int64_t next = 0;  // Iteration.
    std::int64_t plan_version = 0;
    int most_ranks = 0;
    Stretch with = {};
    Stretch without = {};
  };
  struct Figures {
    RunningMean time;    // Of log(time with the plan / time without).
    RunningMean energy;  // Of log(energy with the plan / energy without).
    RunningMean with_seconds;
    RunningMean without_seconds;
    RunningMean with_joules;
    RunningMean without_joules;
  };

  std::optional<std::int64_t> Finish();

  ComparisonBlocks blocks_;
  std::optional<Cycle> cycle_;
  std::map<std::int64_t, Figures> figures_;  // By version.
  std::int64_t dropped_ = 0;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_REALISED_SAVINGS_H_
