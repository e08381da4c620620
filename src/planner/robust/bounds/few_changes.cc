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
                                           double accepted_seconds, double known_joules) {
  if (!OnlyChangesAreLimited(planner, spec)) return std::nullopt;
  const CostedPipeline& pipeline = planner.pipeline();
  const double watts = pipeline.total_blocking_power_watts;
  const double waiting_joules = watts * accepted_seconds;
  const plan::Guard guard;
  plan::ChangePatterns patterns(pipeline, guard);
  plan::PatternSolution found = plan::SolvePatterns(
      &patterns, guard,
      {.seconds = accepted_seconds,
       .waiting_watts = watts,
       .most_changes = spec.conditions.max_changes,
       .known_joules = known_joules - waiting_joules,
       .tolerance_joules = plan::kSameJoules * planner.baseline().energy_joules},
      static_cast<std::int64_t>(std::min(spec.effort * kFewChangesWork, kMostFewChangesWork)));
  return FewChanges{.options = std::move(found.options),
                    .least_joules = found.bound_joules + waiting_joules};
}

}  // namespace perseus::robust
