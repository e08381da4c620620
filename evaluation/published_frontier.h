// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_PUBLISHED_FRONTIER_H_
#define PERSEUS_EVALUATION_PUBLISHED_FRONTIER_H_

#include <vector>

#include "evaluation/sosp24.h"

namespace perseus::sosp24 {

// The plans that a published planner offers for a pipeline, of which one is
// taken for each deadline.
class PublishedFrontier {
 public:
  // Any order. Precondition: not empty. `waiting_watts`: of the whole pipeline.
  PublishedFrontier(std::vector<Sosp24Point> points, double waiting_watts);

  double fastest_seconds() const { return points_.front().iteration_time_seconds; }

  // Of the points that end within `seconds` (>= fastest_seconds()), the one of
  // least energy: the rule of the paper. It stops where energy is least, though
  // the others wait until `seconds` anyway.
  const Sosp24Point& LeastTotal(double seconds) const { return Best(least_total_, seconds); }
  // The one of least energy with the waiting until `seconds`: the right rule.
  const Sosp24Point& LeastEffective(double seconds) const {
    return Best(least_effective_, seconds);
  }

  // Both rules, held against every point for itself: no point within
  // `seconds` has less energy than LeastTotal, none with its waiting less than
  // LeastEffective.
  bool RulesAreBest(double seconds) const;

 private:
  const Sosp24Point& Best(const std::vector<int>& best_up_to, double seconds) const;

  std::vector<Sosp24Point> points_;  // By time.
  double waiting_watts_;
  // [i]: the best of points 0..i, so that a choice is one binary search.
  std::vector<int> least_total_;
  std::vector<int> least_effective_;
};

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_PUBLISHED_FRONTIER_H_
