// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plan/cost_options.h"
#include "plan/group_branch.h"
#include "plan/grouping.h"

// Plans for a granularity that makes computations share knobs.
//
// Groups are few, so the problem is solved as such (group_branch.h), to proof where the work
// allows. Where it does not, the plan is compared with that of the next coarser granularity, which
// is feasible too. So with the same effort a finer granularity is never worse, and none is worse
// than one knob for all.
//
// Searches are bounded by work and pass through the same plans however large the bound is: more
// effort never gives a worse plan.

namespace perseus::plan {
namespace {

constexpr double kNoJoules = std::numeric_limits<double>::infinity();

// Multiplications and the like; about two seconds of CPU, where that many are
// needed.
constexpr double kWork = 4e9;
constexpr double kMostGroupWork = 1e16;

class GroupSearch {
 public:
  GroupSearch(const CostedPipeline& pipeline, double seconds, const Guard& guard, double effort)
      : pipeline_(pipeline),
        guard_(guard),
        seconds_(seconds),
        work_(static_cast<std::int64_t>(std::min(effort * kWork, kMostGroupWork))) {}

  Result<GroupedPlan> Run(Granularity granularity) {
    const GroupSolution solution = Solve(granularity);
    for (bool proven = solution.proven; !proven && granularity != Granularity::kStage;) {
      granularity = Coarser(granularity);
      proven = Solve(granularity).proven;
    }
    if (best_.options.empty()) {
      if (error_ && !any_solved_) return tl::unexpected(*error_);
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no plan within these constraints was found for {:.6g} s; give "
                                   "more time or relax them",
                                   seconds_));
    }
    best_.lower_bound_effective_joules = std::min(solution.bound_joules, best_joules_);
    best_.proven = solution.proven;
    return std::move(best_);
  }

 private:
  GroupSolution Solve(Granularity granularity) {
    auto problem =
        GroupProblem::Make(pipeline_, guard_, GroupComputations(pipeline_, granularity), seconds_);
    if (!problem) {
      error_ = problem.error();
      GroupSolution none;
      none.joules = kNoJoules;
      none.bound_joules = kNoJoules;
      return none;
    }
    any_solved_ = true;
    GroupSolution solution = SolveGroups(*problem, OneForAll(*problem), work_);
    if (!solution.choice.empty() && solution.joules < best_joules_) {
      best_.options = problem->PlanOf(solution.choice);
      best_joules_ = solution.joules;
    }
    return solution;
  }

  // The cheapest knob that all groups can have, where there is one.
  static std::vector<std::vector<int>> OneForAll(const GroupProblem& problem) {
    std::vector<std::vector<int>> choices;
    for (const auto& option : problem.groups().front().options) {
      std::vector<int> choice;
      for (const auto& group : problem.groups()) {
        for (std::size_t k = 0; k < group.options.size(); ++k) {
          if (group.options[k].knob == option.knob) choice.push_back(static_cast<int>(k));
        }
      }
      if (static_cast<int>(choice.size()) == problem.num_groups()) {
        choices.push_back(std::move(choice));
      }
    }
    choices.emplace_back(problem.num_groups(), 0);  // All at their fastest.
    return choices;
  }

  const CostedPipeline& pipeline_;
  const Guard guard_;
  double seconds_;
  std::int64_t work_;
  GroupedPlan best_;
  double best_joules_ = kNoJoules;
  std::optional<Error> error_;
  bool any_solved_ = false;
};

}  // namespace

bool SharesKnobs(const CostedPipeline& pipeline, Granularity granularity) {
  return granularity != Granularity::kComputation &&
         GroupComputations(pipeline, granularity).size() < pipeline.table_of.size();
}

Result<GroupedPlan> SearchGroups(const CostedPipeline& pipeline, double seconds,
                                 const PlanConstraints& constraints, double effort) {
  return GroupSearch(pipeline, seconds, GuardOf(constraints), effort).Run(constraints.granularity);
}

}  // namespace perseus::plan
