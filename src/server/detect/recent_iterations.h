// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_RECENT_ITERATIONS_H_
#define PERSEUS_SERVER_DETECT_RECENT_ITERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace perseus::server {

// What the last iterations of a job took, as its ranks reported them.
struct RecentFigures {
  std::size_t iterations = 0;
  double iteration_seconds = 0;  // Median; of each iteration the slowest rank.
  std::optional<double>
      watts;              // Of all GPUs together. None: of no iteration all ranks reported it.
  double at_seconds = 0;  // When the last of them was complete.
};

// Of all iterations that one server heard of since it began.
struct IterationTotals {
  std::int64_t iterations = 0;
  std::int64_t with_energy = 0;  // Of these, all ranks told their energy:
  double joules = 0;
  // Of those that all ranks ran with the plan: what they saved.
  double promised_joules = 0;        // Against maximum clocks, by what the plan promises.
  double realised_saved_joules = 0;  // By a comparison of this plan with no clock set,
  double realised_lost_joules = 0;   // or lost, where the plan was measured to need more.
};

// Keeps the last iterations of one job. One thread at a time.
class RecentIterations {
 public:
  static constexpr std::size_t kMost = 16;

  // Adds one iteration. `joules`: of all ranks; none: not all told theirs.
  void Add(double seconds, std::optional<double> joules, double now_seconds);
  // Of an iteration that was added: what the plan promises to have saved in it and, where that was
  // compared, what it saved. Negative: it needed more.
  void AddSaved(double promised_joules, std::optional<double> realised_joules);
  // None: there was no iteration yet.
  std::optional<RecentFigures> Figures() const;
  const IterationTotals& totals() const { return totals_; }

 private:
  struct Iteration {
    double seconds = 0;
    std::optional<double> joules;
  };
  std::deque<Iteration> last_;
  double at_seconds_ = 0;
  IterationTotals totals_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_RECENT_ITERATIONS_H_
