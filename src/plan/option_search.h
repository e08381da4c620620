// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_OPTION_SEARCH_H_
#define PERSEUS_PLAN_OPTION_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/network.h"

namespace perseus::plan {

// One option on the solver's integer grid.
struct GridOption {
  std::int64_t length = 0;    // Negative: the activity does not have this knob.
  frontier::Int128 cost = 0;  // Above the slowest cost of the activity's curve.
};

// The choices of a discrete plan: groups of activities that share one knob.
struct SearchSpace {
  // [curve][knob]
  std::vector<std::vector<GridOption>> options;
  // Activities that share a knob; every activity is in exactly one group.
  std::vector<std::vector<int>> groups;
  // [group] The knobs that it may take, fastest first.
  std::vector<std::vector<int>> knobs;
  // [group] The group that runs next on the same rank, or -1.
  std::vector<int> next_group;
};

// Chooses a knob for every group such that the deadline of `program` holds and
// the total cost is small. `program` is optimal with every activity free, and
// is consumed. The search is a dive guided by exact re-optimisation, followed
// by neighbourhood search; see option_search.cc. It does at most about
// `work_limit` units of work (nodes touched), but may use up to
// `basic_work_limit` for the first dives, without which a plan is poor.
// Deterministic in its input.
// Returns the knob of every group, or nullopt when it finds none in time.
std::optional<std::vector<int>> SearchOptions(const frontier::Network& network,
                                              frontier::DeadlineProgram program,
                                              const SearchSpace& space, std::int64_t work_limit,
                                              std::int64_t basic_work_limit);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_OPTION_SEARCH_H_
