// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_WINDOW_SEARCH_H_
#define PERSEUS_PLAN_SEARCH_WINDOW_SEARCH_H_

#include <cstdint>

#include "frontier/solver.h"
#include "plan/search/option_search.h"

namespace perseus::plan {

// SearchOptions() for many activities, each with a knob of its own: the work of
// each of its steps grows with the activities, not with their square. Chooses
// stretch by stretch; see window_search.cc. `deadline` is that of `program`.
void SearchWindows(const frontier::Network& network, const frontier::DeadlineProgram& program,
                   std::int64_t deadline, const SearchSpace& space, const SearchBudget& budget,
                   const ChoiceReport& report);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_SEARCH_WINDOW_SEARCH_H_
