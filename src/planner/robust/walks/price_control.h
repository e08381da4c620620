// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_PRICE_CONTROL_H_
#define PERSEUS_ROBUST_WALKS_PRICE_CONTROL_H_

#include <algorithm>

#include "robust/replay/lane_replay.h"
#include "robust/walks/search_goal.h"

namespace perseus::robust {

// Prices that hold an annealing to its goal: that of a second follows whether the iteration is
// late, that of a change what is left of the limit, both faster and faster.
class PriceControl {
 public:
  // Those of the goal, unless a walk before has left others.
  void Begin(const SearchGoal& goal) {
    if (of_time_ <= 0) of_time_ = goal.price_of_time;
    if (of_change_ <= 0) of_change_ = goal.price_of_change;
  }

  // `share`: of the walk, behind it. The price of time stays between `least` and `most`.
  void Adapt(const SearchGoal& goal, const LaneFigures& now, double share, double least,
             double most) {
    constexpr double kMuch = 0.98;
    constexpr double kLateGain = 3e3;
    constexpr double kSlowGain = 0.001;
    constexpr double kFastGain = 0.02;
    const double gain = kSlowGain + kFastGain * share * share;
    const double late = (now.seconds / goal.accepted_seconds - 1) * kLateGain;
    of_time_ = std::clamp(of_time_ * (1 + gain * std::clamp(late, -1.0, 1.0)), least, most);
    if (goal.price_of_change <= 0) return;
    const bool many = now.changes > kMuch * goal.most_changes;
    of_change_ = std::clamp(of_change_ * (many ? 1 + gain : 1 - gain), goal.price_of_change * 1e-3,
                            goal.price_of_change * 1e2);
  }

  double of_time() const { return of_time_; }      // Watts, beyond waiting.
  double of_change() const { return of_change_; }  // Joules, beyond what a change costs.

 private:
  double of_time_ = 0;
  double of_change_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_PRICE_CONTROL_H_
