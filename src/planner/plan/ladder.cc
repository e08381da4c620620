// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "plan/named_times.h"

// Plans for many times of one planner.
namespace perseus {
inline namespace v0 {

Result<std::vector<Plan>> Planner::Ladder(int count, const PlanSpec& spec) const {
  if (count < 2) {
    return InvalidInput(fmt::format("a ladder of {} plans; expected at least 2", count));
  }
  const double first = frontier().fastest_seconds;
  const double last = frontier().tstar_seconds;
  std::vector<Plan> plans;
  for (int step = 0; step < count; ++step) {
    const double share = static_cast<double>(step) / (count - 1);
    const double seconds = step + 1 == count ? last : first + (last - first) * share;
    Result<Plan> plan = PlanFor(seconds, {.constraints = spec.constraints, .effort = spec.effort});
    if (!plan) {
      // Constraints may leave nothing for the shortest times.
      const bool last_and_none = step + 1 == count && plans.empty();
      if (plan.error().code != ErrorCode::kInfeasible || last_and_none) {
        return tl::unexpected(plan.error());
      }
    } else {
      // Those before are never worse than one for less time by now.
      std::vector<Plan> last_two;
      if (!plans.empty()) {
        last_two.push_back(std::move(plans.back()));
        plans.pop_back();
      }
      last_two.push_back(*std::move(plan));
      plan::CarryForward(pipeline(), &last_two);
      std::move(last_two.begin(), last_two.end(), std::back_inserter(plans));
    }
    const Plan* const made = plans.empty() ? nullptr : &plans.back();
    if (spec.progress && !spec.progress({.share = (step + 1.0) / count, .better = made})) break;
  }
  return plans;
}

}  // namespace v0
}  // namespace perseus
