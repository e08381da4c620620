// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/bounds/few_changes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plan/grouped/change_patterns.h"
#include "plan/grouped/group_problem.h"
#include "plan/grouped/pattern_branch.h"
#include "robust/check_conditions.h"

namespace perseus::robust {
namespace {

// Multiplications and the like: about two seconds of CPU, where that many are needed.
constexpr double kFewChangesWork = 2e9;
constexpr double kMostFewChangesWork = 1e16;

bool OnlyChangesAreLimited(const Planner& planner, const RobustPlanSpec& spec) {
  const CostedPipeline& pipeline = planner.pipeline();
  const Conditions& conditions = spec.conditions;
  return conditions.max_changes && conditions.change_joules == 0 && !conditions.noise.any() &&
         !conditions.switching.any() && CornersOf(conditions).size() == 1 &&
         !(conditions.profile_errors && !pipeline.errors.empty()) && !spec.constraints.any() &&
         !pipeline.waiting_depends_on_clock() &&
         pipeline.dag.size() <= plan::kMostPatternComputations;
}

}  // namespace

std::optional<FewChanges> SearchFewChanges(const Planner& planner, const RobustPlanSpec& spec,
                                           double accepted_seconds) {
  if (!OnlyChangesAreLimited(planner, spec)) return std::nullopt;
  const CostedPipeline& pipeline = planner.pipeline();
  const double watts = pipeline.total_blocking_power_watts;
  const plan::Guard guard;
  const double tolerance = plan::kSameJoules * planner.baseline().energy_joules;
  const auto work =
      static_cast<std::int64_t>(std::min(spec.effort * kFewChangesWork, kMostFewChangesWork));
  // What one limit finds depends on nothing else, so that the best of all smaller ones is the same
  // whichever limit is asked for.
  const auto with_most = [&](std::int64_t changes) {
    plan::ChangePatterns patterns(pipeline, guard);
    return plan::SolvePatterns(&patterns, guard,
                               {.seconds = accepted_seconds,
                                .waiting_watts = watts,
                                .most_changes = changes,
                                .tolerance_joules = tolerance},
                               work);
  };
  const auto is_proven = [&](const plan::PatternSolution& found) {
    return found.bound_joules >= found.joules - tolerance;
  };
  std::int64_t changes = *spec.conditions.max_changes;
  plan::PatternSolution best = with_most(changes);
  const double least_joules = best.bound_joules + watts * accepted_seconds;
  for (bool proven = is_proven(best); !proven && changes > 0;) {
    plan::PatternSolution fewer = with_most(--changes);
    proven = is_proven(fewer);
    if (fewer.joules < best.joules) best = std::move(fewer);
  }
  return FewChanges{.options = std::move(best.options), .least_joules = least_joules};
}

}  // namespace perseus::robust
