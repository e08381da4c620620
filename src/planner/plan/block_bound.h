// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_BLOCK_BOUND_H_
#define PERSEUS_PLAN_BLOCK_BOUND_H_

#include <cstdint>
#include <span>
#include <vector>

#include "frontier/solver.h"
#include "plan/option_search.h"

namespace perseus::plan {

// By how much more than the relaxation every discrete plan costs, proven block
// by block (docs/explanation/planning.md, "Optimality gap"): the network is cut into
// disjoint blocks of activities, the arcs between them are replaced by their
// prices at the relaxation's optimum, and each block is searched to the end
// with discrete options. See block_bound.cc for the proof.
struct BlockBound {
  frontier::Int128 gain = 0;  // >= 0, in grid units of cost.
  int blocks = 0;             // That were searched,
  int proven = 0;             // and to the end.
};

// Activities in the order in which blocks are cut: those of each rank, by start.
using RankOrder = std::vector<std::vector<int>>;

// For `deadline`, of which `relaxation` is the optimum with everything free. `space` has the
// options of every plan that counts; its own curves are those of `network`. Ends where `work_limit`
// is used up: larger blocks are then left out. `deep`: what is left of it goes into longer searches
// of the same blocks, and never lowers the bound. Deterministic.
BlockBound BoundByBlocks(const frontier::Network& network,
                         const frontier::DeadlineProgram& relaxation, std::int64_t deadline,
                         const SearchSpace& space, const RankOrder& ranks, std::int64_t work_limit,
                         bool deep);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_BLOCK_BOUND_H_
