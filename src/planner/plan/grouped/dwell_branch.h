// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_DWELL_BRANCH_H_
#define PERSEUS_PLAN_GROUPED_DWELL_BRANCH_H_

#include <cstdint>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// Up to so many computations plans with a dwell are searched by branch and bound.
inline constexpr int kMostDwellComputations = 64;

struct DwellSolution {
  std::vector<CostOption> options;  // [computation] Empty where none was found.
  double joules = 0;                // Effective energy; infinite where none was found.
  double bound_joules = 0;  // No plan with this dwell needs less than this or `known_joules`.
  std::int64_t work = 0;
};

// The best plan that ends by `seconds` and whose stretches of one knob last at least
// `least_seconds` with everything at its fastest, or are a whole rank. Looks at every way to cut
// ranks into stretches, as far as `work_limit` allows (units of about a multiplication). Stops
// where no plan is better than one that is known, by more than `tolerance_joules`. Deterministic,
// and more work never gives a worse plan or bound.
DwellSolution SolveDwell(const CostedPipeline& pipeline, const Guard& guard, double least_seconds,
                         double seconds, double known_joules, double tolerance_joules,
                         std::int64_t work_limit);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_DWELL_BRANCH_H_
