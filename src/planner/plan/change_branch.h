// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_CHANGE_BRANCH_H_
#define PERSEUS_PLAN_CHANGE_BRANCH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// Up to so many computations plans are searched by branch and bound over what ranks may do.
inline constexpr int kMostPatternComputations = 64;

struct PatternProblem {
  double seconds = 0;  // The plan ends by then,
  // and each second that it ends before saves so much, beside the effective energy.
  double waiting_watts = 0;
  std::optional<std::int64_t> most_changes = {};  // CountKnobChanges(), all.
  // Of a plan from elsewhere: where none is better by more than `tolerance_joules`, it is over.
  double known_joules = std::numeric_limits<double>::infinity();
  double tolerance_joules = 0;
};

struct PatternSolution {
  std::vector<CostOption> options;  // [computation] Empty where none was found.
  // Effective energy, less what ending early saves; infinite where none was found.
  double joules = 0;
  double bound_joules = 0;  // No plan needs less than this or `known_joules`.
  std::int64_t work = 0;
};

// The best plan, as far as `work_limit` goes (units of about a multiplication). Deterministic, and
// more work never gives a worse plan or bound.
PatternSolution SolvePatterns(const CostedPipeline& pipeline, const Guard& guard,
                              const PatternProblem& problem, std::int64_t work_limit);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_CHANGE_BRANCH_H_
