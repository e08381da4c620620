// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_PROGRAM_H_
#define PERSEUS_PLAN_GROUPED_PROGRAM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "plan/option_search.h"

namespace perseus::plan {

// The relaxation of a plan in which some groups have their knob already: a
// DeadlineProgram whose activities are fixed and released by group. Network
// and space must outlive it.
class GroupedProgram {
 public:
  GroupedProgram(const frontier::Network& network, frontier::DeadlineProgram program,
                 const SearchSpace& space);

  int size() const { return static_cast<int>(space_.groups.size()); }
  bool each_alone() const { return space_.groups.size() == network_.curve_of.size(); }
  const std::vector<int>& KnobsOf(int group) const { return space_.knobs[group]; }

  // [group] The knob, or -1 while free.
  const std::vector<int>& chosen() const { return chosen_; }
  bool IsFree(int group) const { return chosen_[group] < 0; }
  frontier::Int128 objective() const { return program_.objective(); }
  std::int64_t work() const { return program_.work(); }

  void Fix(int group, int knob);
  void Release(int group);
  bool CanMeetDeadline() { return program_.CanMeetDeadline(); }
  void SetWorkLimit(std::int64_t limit) { program_.SetWorkLimit(limit); }
  // False when there is no optimum within `limit`.
  bool Optimise(frontier::Int128 limit);
  // The same after Fix(group, ...). A large group that is too slow costs the
  // simplex a long way to find that out, so that is looked at first.
  bool OptimiseFixed(int group, frontier::Int128 limit);

  // Puts another state in the place of this one.
  void Assign(frontier::DeadlineProgram program, std::vector<int> chosen);
  const frontier::DeadlineProgram& program() const { return program_; }

  // Position in KnobsOf(group) of the slowest option within the duration that
  // the relaxation gives. Groups of one only.
  int SlowestWithin(int group) const;

  // Cost of a group at a knob, in grid units.
  frontier::Int128 CostOf(int group, int knob) const;

  // Knobs with what they cost at the current prices, least first.
  std::vector<std::pair<frontier::Int128, int>> ByPrice(int group) const;

  // The options on both sides of the relaxation, for a group of one; else the
  // two best at current prices.
  std::vector<int> Neighbours(int group) const;

 private:
  const GridOption& OptionOf(int activity, int knob) const {
    return space_.options[network_.curve_of[activity]][knob];
  }

  const frontier::Network& network_;
  frontier::DeadlineProgram program_;
  const SearchSpace& space_;
  std::vector<int> chosen_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_PROGRAM_H_
