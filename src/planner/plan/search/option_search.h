// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_OPTION_SEARCH_H_
#define PERSEUS_PLAN_SEARCH_OPTION_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "frontier/solver.h"

namespace perseus::plan {

// One option on the solver's integer grid.
struct GridOption {
  std::int64_t length = 0;    // Negative: the activity does not have this knob.
  frontier::Int128 cost = 0;  // Above the slowest cost of the activity's curve.
};

// The choices of a discrete plan in which every activity has a knob of its own.
struct SearchSpace {
  // [curve][knob]
  std::vector<std::vector<GridOption>> options;
  // [activity] The knobs that it may take, fastest first.
  std::vector<std::vector<int>> knobs;
  // [activity] The one that runs next on the same rank, or -1.
  std::vector<int> next;

  int size() const { return static_cast<int>(knobs.size()); }
};

// How long to search, in units of work (nodes touched).
struct SearchBudget {
  // The usual work for a problem of this size: shares of it go to the stages of
  // the search, whose sequence therefore does not depend on `limit`.
  std::int64_t usual = 0;
  // Where the sequence is cut.
  std::int64_t limit = 0;
};

// Told of every better choice (the knob of each activity), and now and then that
// there is none yet (nullptr), with the work done; false ends the search.
using ChoiceReport = std::function<bool(const std::vector<int>* better, std::int64_t work)>;

// Chooses a knob for every activity such that the deadline of `program` holds and
// the total cost is small. `program` is optimal with every activity free, and
// is consumed. The search is a dive guided by exact re-optimisation, followed
// by branch and bound and neighbourhood search; see option_search.cc. What it
// finds is reported, and each choice is better than the one before. The
// sequence of reports for a limit is the beginning of that for a higher one.
// Deterministic in its input.
void SearchOptions(const frontier::Network& network, frontier::DeadlineProgram program,
                   const SearchSpace& space, const SearchBudget& budget,
                   const ChoiceReport& report);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_SEARCH_OPTION_SEARCH_H_
