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

// The quantile of Student's t for a two-sided interval of 95 %, to 1e-3.
// `freedom` >= 1.
double StudentT95(std::int64_t freedom);

// A share with its 95 % confidence interval: 0.03 is 3 %.
struct ShareEstimate {
  double share = 0;
  double least = 0;
  double most = 0;
};

// Numbers of which only count, mean and spread are kept (Welford).
class RunningMean {
 public:
  void Add(double value);
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Half of a t-interval of 95 %. Needs two numbers.
  double HalfInterval() const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// What is known of one version of the plan against maximum clocks.
struct Realised {
  std::int64_t plan_version = 0;
  std::int64_t pairs = 0;         // Of stretches, for time.
  std::int64_t energy_pairs = 0;  // For energy.
  double with_seconds = 0;        // Mean iteration with the plan; without: at maximum clocks.
  double without_seconds = 0;
  double with_joules = 0;  // Of one GPU, where it says its energy.
  double without_joules = 0;
  std::optional<ShareEstimate> slowdown = {};  // Of the iteration time; from kLeastPairs pairs on.
  std::optional<ShareEstimate> saving = {};    // Of the energy.
};

// One complete iteration of a job.
struct ComparedIteration {
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;  // With the plan; 0: at maximum clocks.
  bool is_known = false;          // All ranks ran the same, and that is known.
  int ranks = 0;
  double seconds = 0;  // Of the rank that took longest.
  int energy_ranks = 0;
  double joules = 0;  // Mean over energy_ranks.
};

// Compares stretches of iterations with the plan and at maximum clocks, as
// ComparisonBlocks orders them. Not thread-safe.
//
// One cycle gives one pair: the mean of its stretch with the plan and that of
// its stretch without, each without its settling iteration. The logarithm of their
// ratio is one number; the interval is Student's t over cycles. Noise that lasts for
// some iterations is inside the means; noise that lasts longer reaches pairs with
// random signs, as the order within a cycle is random, so that pairs do not
// correlate. A cycle in which the plan changed, iterations are missing, or some
// rank did otherwise is left out whole. Energy that is not said is never made up:
// a cycle counts for energy only if nine tenths of its ranks said it each time.
class RealisedSavings {
 public:
  static constexpr std::int64_t kLeastPairs = 3;
  static constexpr std::size_t kMostVersions = 16;

  // Begins anew where the blocks are others.
  void Set(const ComparisonBlocks& blocks);
  const ComparisonBlocks& blocks() const { return blocks_; }

  // In ascending order. Returns the version whose figures are new, where a pair is.
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
    RunningMean time;    // Logarithms of with / without.
    RunningMean energy;  // Likewise.
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
