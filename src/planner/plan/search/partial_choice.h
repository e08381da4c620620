// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_PARTIAL_CHOICE_H_
#define PERSEUS_PLAN_SEARCH_PARTIAL_CHOICE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "plan/search/option_search.h"

namespace perseus::plan {

// The relaxation of a plan in which some activities have their knob already: a
// DeadlineProgram whose activities are fixed to options of a space. Network and
// space must outlive it.
class PartialChoice {
 public:
  PartialChoice(const frontier::Network& network, frontier::DeadlineProgram program,
                const SearchSpace& space);

  int size() const { return space_.size(); }
  const std::vector<int>& KnobsOf(int activity) const { return space_.knobs[activity]; }

  // [activity] The knob, or -1 while free.
  const std::vector<int>& chosen() const { return chosen_; }
  bool IsFree(int activity) const { return chosen_[activity] < 0; }
  frontier::Int128 objective() const { return program_.objective(); }
  std::int64_t work() const { return program_.work(); }

  void Fix(int activity, int knob);
  void Release(int activity);
  // False when there is no optimum within `limit`.
  bool Optimise(frontier::Int128 limit);

  // Puts another state in the place of this one.
  void Assign(frontier::DeadlineProgram program, std::vector<int> chosen);
  const frontier::DeadlineProgram& program() const { return program_; }

  // Position in KnobsOf(activity) of the slowest option within the duration that
  // the relaxation gives.
  int SlowestWithin(int activity) const;

  // Cost of an activity at a knob, in grid units.
  frontier::Int128 CostOf(int activity, int knob) const { return OptionOf(activity, knob).cost; }

  // Knobs with what they cost at the current prices, least first.
  std::vector<std::pair<frontier::Int128, int>> ByPrice(int activity) const;

  // Knobs with the bound of this choice and that knob, least first: those below `limit` alone.
  // Expects an optimal program, and leaves it at one of the knobs.
  std::vector<std::pair<frontier::Int128, int>> ByBound(int activity, frontier::Int128 limit);

  // Whether the relaxation mixes two options.
  bool IsBetween(int activity) const;

  // The options on both sides of the relaxation.
  std::vector<int> Neighbours(int activity) const;

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

#endif  // PERSEUS_PLAN_SEARCH_PARTIAL_CHOICE_H_
