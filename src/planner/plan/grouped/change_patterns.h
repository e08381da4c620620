// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_CHANGE_PATTERNS_H_
#define PERSEUS_PLAN_GROUPED_CHANGE_PATTERNS_H_

#include <vector>

#include "plan/grouped/rank_patterns.h"

namespace perseus::plan {

// Any knobs, of which changes have a price.
class ChangePatterns final : public RankPatterns {
 public:
  using RankPatterns::RankPatterns;

  double Cheapest(const Allowed& allowed, const Prices& prices, std::vector<int>* knobs) override;
  void Forbid(const Prices& prices, double room, Allowed* allowed) override;

 private:
  // Of one rank, where its first computation has a given knob.
  struct Rank {
    std::vector<int> knobs;                   // That one of its computations may take.
    std::vector<std::vector<double>> joules;  // [position][place in knobs] Infinite: forbidden.
  };

  Rank RankOf(const std::vector<int>& order, const Allowed& allowed, const Prices& prices);
  // [position][place in knobs] The least from the first computation to this one, with both.
  void Forward(const Rank& rank, int first, double change_joules,
               std::vector<std::vector<double>>* least);
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_CHANGE_PATTERNS_H_
