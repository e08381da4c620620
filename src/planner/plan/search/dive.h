// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_SEARCH_DIVE_H_
#define PERSEUS_PLAN_SEARCH_DIVE_H_

#include <cstdint>
#include <span>

#include "frontier/solver.h"
#include "plan/search/dive_order.h"
#include "plan/search/option_search.h"
#include "plan/search/partial_choice.h"

namespace perseus::plan {

// Fixes the free activities of a program one after the other, each to the knob with
// the best bound. See option_search.cc. Borrows its arguments.
class Dive {
 public:
  Dive(const SearchSpace& space, const ActivityOrder& order, const DiveStyle& style,
       PartialChoice* program)
      : space_(space), order_(order), style_(style), program_(*program) {}

  enum class Outcome : std::uint8_t { kDone, kStuck, kOutOfWork };
  // Fixes `activities` in their order. kStuck where no knob of an activity has a bound
  // within `limit`; kOutOfWork as soon as the program's work passes
  // `work_limit`: activities that were not reached are free.
  Outcome Run(std::span<const int> activities, frontier::Int128 limit, std::int64_t work_limit);

 private:
  int Following(int activity) const;
  frontier::Int128 LookAhead(int activity, frontier::Int128 limit);
  bool ChooseKnob(int activity, frontier::Int128 limit);

  const SearchSpace& space_;
  const ActivityOrder& order_;
  const DiveStyle style_;
  PartialChoice& program_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_SEARCH_DIVE_H_
