// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_BOUNDS_FEW_CHANGES_H_
#define PERSEUS_ROBUST_BOUNDS_FEW_CHANGES_H_

#include <optional>
#include <vector>

#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::robust {

// A small pipeline whose changes are limited, and nothing else stands between the plan and what
// becomes of it: searched by branch and bound (plan/grouped/pattern_branch.h).
struct FewChanges {
  std::vector<CostOption> options;  // Empty: none was found.
  // Of one pipeline with waiting: no plan within the limit that ends in time uses less.
  double least_joules = 0;
};

// Nothing where it is not such a case. `accepted_seconds`: the iteration may last so long. Where
// the search does not prove its plan, it also looks at smaller limits, down to one that it proves:
// so a higher limit never gives a worse plan.
std::optional<FewChanges> SearchFewChanges(const Planner& planner, const RobustPlanSpec& spec,
                                           double accepted_seconds);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_BOUNDS_FEW_CHANGES_H_
