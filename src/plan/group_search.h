// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUP_SEARCH_H_
#define PERSEUS_PLAN_GROUP_SEARCH_H_

#include <cstdint>
#include <vector>

#include "frontier/network.h"
#include "plan/option_search.h"

namespace perseus::plan {

// Improves a choice of knobs for groups of many computations, for which the
// relaxation (each computation on its own) is a poor guide: threshold
// accepting (Dueck and Scheuer 1990) on steps of one group's knob, each judged
// by a longest path; what exceeds the deadline is charged at a multiple of
// `price_of_time`. Never returns anything worse than `knobs`, which must meet
// the deadline. Deterministic; does about `work_limit` units of work.
std::vector<int> ImproveGroups(const frontier::Network& network, const SearchSpace& space,
                               std::int64_t deadline, std::int64_t price_of_time,
                               std::vector<int> knobs, std::int64_t work_limit);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUP_SEARCH_H_
