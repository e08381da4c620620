// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans for constraints that make computations share knobs.
//
// Granularity. Groups are few, so the problem is solved as such
// (group_branch.h), to proof where the work allows. Where it does not, the
// plan is held against that of the next coarser granularity, which is feasible
// too. So with the same effort a finer granularity is never worse, and none is
// worse than one knob for all.
//
// Dwell. A plan that never changes a knob keeps any dwell: one knob per rank
// comes first. Then ranks are cut into ever shorter stretches that last long
// enough (dwell_segments.h), each level begun with the plan of the one before; once into any that
// do, once into whole cycles of forwards and backwards. The coarser granularities, their groups
// merged until they keep the dwell, are candidates, so that none of them is better. Small pipelines
// are then searched over all ways to cut ranks (pattern_branch.h), to proof where the work allows.
// In others a shorter dwell may still give a worse plan: nothing is promised there.
//
// All searches are bounded by work and pass through the same plans however
// large the bound is: more effort never gives a worse plan.

#include "plan/grouped/grouped_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plan/cost_options.h"
#include "plan/grouped/dwell_patterns.h"
#include "plan/grouped/group_branch.h"
#include "plan/grouped/group_problem.h"
#include "plan/grouped/pattern_branch.h"
#include "plan/grouping.h"

namespace perseus::plan {
namespace {

constexpr double kNoJoules = std::numeric_limits<double>::infinity();

// Multiplications and the like; about two seconds of CPU, where that many are
// needed.
constexpr double kWork = 4e9;
constexpr double kShortestStretchesWork = 1e9;
// For each level before: where the search gets stuck among few long stretches, no later level gets
// away from it. Not scaled by the effort: more effort has to begin the last level with the same
// plan.
constexpr std::int64_t kLevelWork = 60'000'000;
// For all levels before together: where it runs out, the levels that are left
// are not tried.
constexpr double kLevelsWork = 2e9;
// For all ways to cut a small pipeline.
constexpr double kBranchWork = 2e9;
constexpr double kMostGroupWork = 1e16;

class GroupSearch {
 public:
  GroupSearch(const CostedPipeline& pipeline, double seconds, const PlanConstraints& constraints,
              double effort)
      : pipeline_(pipeline),
        constraints_(constraints),
        guard_(GuardOf(constraints)),
        seconds_(seconds),
        effort_(effort),
        work_(Work(kWork)) {}

  Result<GroupedPlan> Run() {
    if (HasDwell(constraints_)) {
      WithDwell(constraints_.granularity);
      Branch();
    } else {
      WithoutDwell(constraints_.granularity);
    }
    if (best_.options.empty()) {
      if (error_ && !any_solved_) return tl::unexpected(*error_);
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no plan within these constraints was found for {:.6g} s; give "
                                   "more time or relax them",
                                   seconds_));
    }
    best_.lower_bound_effective_joules = std::min(bound_, best_joules_);
    best_.proven = proven_;
    return std::move(best_);
  }

 private:
  std::int64_t Work(double full) const {
    return static_cast<std::int64_t>(std::min(effort_ * full, kMostGroupWork));
  }

  // Solves one grouping, beginning with `start` unless that is empty.
  GroupSolution Solve(const std::vector<std::vector<int>>& groups, std::int64_t work,
                      std::vector<CostOption>* start = nullptr) {
    auto problem = GroupProblem::Make(pipeline_, guard_, groups, seconds_);
    if (!problem) {
      error_ = problem.error();
      GroupSolution none;
      none.joules = kNoJoules;
      none.bound_joules = kNoJoules;
      return none;
    }
    any_solved_ = true;
    std::vector<std::vector<int>> starts = OneForAll(*problem);
    if (start != nullptr && !start->empty()) {
      if (auto choice = problem->ChoiceOf(*start)) starts.push_back(*std::move(choice));
    }
    GroupSolution solution = SolveGroups(*problem, starts, work);
    best_.work += solution.work;
    if (!solution.choice.empty()) {
      std::vector<CostOption> options = problem->PlanOf(solution.choice);
      if (start != nullptr) *start = options;
      Offer(std::move(options), solution.joules);
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

  void Offer(std::vector<CostOption> options, double joules) {
    if (!(joules < best_joules_)) return;
    best_.options = std::move(options);
    best_joules_ = joules;
  }

  GroupSolution SolveBy(Granularity granularity) {
    PlanConstraints constraints = constraints_;
    constraints.granularity = granularity;
    return Solve(GroupComputations(pipeline_, constraints), work_);
  }

  void WithoutDwell(Granularity granularity) {
    const GroupSolution solution = SolveBy(granularity);
    if (!solution.proven && granularity != Granularity::kStage) {
      WithoutDwell(Coarser(granularity));
    }
    bound_ = solution.bound_joules;
    proven_ = solution.proven;
  }

  // Ever shorter stretches, as DwellLevels() makes them.
  void SolveLevels(const DwellLevelList& levels) {
    // Not begun with coarser plans, which depend on the effort.
    std::vector<CostOption> chain;
    std::int64_t left = Work(kLevelsWork);
    for (const auto& groups : levels) {
      if (&groups == &levels.back()) {
        Solve(groups, Work(kShortestStretchesWork), &chain);
      } else {
        left -= Solve(groups, std::min(kLevelWork, left), &chain).work;
        if (left <= 0) break;
      }
    }
  }

  void WithDwell(Granularity granularity) {
    if (granularity == Granularity::kComputation) {
      for (const DwellLevelList& levels : LevelsOfDwell(pipeline_, constraints_)) {
        SolveLevels(levels);
      }
    } else {
      const GroupSolution solution = SolveBy(granularity);
      if (granularity == Granularity::kStage) {
        bound_ = solution.bound_joules;
        proven_ = solution.proven;
        return;
      }
    }
    WithDwell(Coarser(granularity));
    // Where groups are merged in another way there may be better plans.
    bound_ = -kNoJoules;
    proven_ = false;
  }

  // All ways to cut the ranks of a small pipeline, where nothing but the dwell makes groups.
  void Branch() {
    if (constraints_.granularity != Granularity::kComputation) return;
    if (pipeline_.dag.size() > kMostPatternComputations) return;
    double joules = 0;
    for (const int table : pipeline_.table_of) {
      joules += pipeline_.tables[table].baseline.energy_joules;
    }
    const double tolerance = kSameJoules * joules;
    DwellPatterns patterns(pipeline_, guard_, LeastDwellSeconds(constraints_));
    PatternSolution found = SolvePatterns(
        &patterns, guard_,
        {.seconds = seconds_, .known_joules = best_joules_, .tolerance_joules = tolerance},
        Work(kBranchWork));
    best_.work += found.work;
    if (!found.options.empty()) Offer(std::move(found.options), found.joules);
    bound_ = found.bound_joules - tolerance;
    proven_ = found.bound_joules >= best_joules_ - tolerance;
  }

  const CostedPipeline& pipeline_;
  const PlanConstraints constraints_;
  const Guard guard_;
  double seconds_;
  double effort_;
  std::int64_t work_;
  GroupedPlan best_;
  double best_joules_ = kNoJoules;
  double bound_ = -kNoJoules;
  bool proven_ = false;
  std::optional<Error> error_;
  bool any_solved_ = false;
};

}  // namespace

bool SharesKnobs(const CostedPipeline& pipeline, const PlanConstraints& constraints) {
  return MayShareKnobs(constraints) &&
         GroupComputations(pipeline, constraints).size() < pipeline.table_of.size();
}

Result<GroupedPlan> SearchGroups(const CostedPipeline& pipeline, double seconds,
                                 const PlanConstraints& constraints, double effort) {
  return GroupSearch(pipeline, seconds, constraints, effort).Run();
}

}  // namespace perseus::plan
