// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/knob_sets.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "plan/cost_options.h"
#include "plan/grouped/group_branch.h"
#include "plan/grouped/group_problem.h"
#include "plan/grouped/knob_subset.h"
#include "plan/grouping.h"

namespace perseus::plan {
namespace {

constexpr int kMostComputationsOfSets = 64;
constexpr std::size_t kMostSets = 20'000;
constexpr double kSetWork = 2e7;    // To list the sets.
constexpr double kSolveWork = 1e9;  // To solve them; half a second of CPU.
constexpr double kMostSolveWork = 1e16;
// Of all costs: what sums of doubles may be wrong by.
constexpr double kSumsRounding = 1e-11;
constexpr double kNoKnob = std::numeric_limits<double>::infinity();

// The sets of at most so many knobs that may hold a plan of less than some energy.
class KnobSets {
 public:
  struct Set {
    std::vector<bool> kept;
    double bound_joules = 0;  // No plan with these knobs needs less.
  };

  // What a group costs at each knob, its time at the price that the optimum of the relaxation
  // puts on it. Any prices give a bound: what these cost without a limit is the optimum.
  KnobSets(const CostedPipeline& pipeline, const Guard& guard, const TimeCostSchedule& optimum,
           double error, const std::vector<std::vector<int>>& groups)
      : num_knobs_(pipeline.knobs.size()) {
    double free = 0;
    double magnitude = 0;
    for (const std::vector<int>& group : groups) {
      std::vector<double> of_group(num_knobs_, 0.0);
      for (const int i : group) {
        const CostTable& table = pipeline.TableOf(i);
        std::vector<double> own(num_knobs_, kNoKnob);
        for (const CostOption& option : table.all_options) {
          own[option.knob] =
              EffectiveEnergy(table, option) + optimum.price[i] * guard.Seconds(table, option);
        }
        const double least = *std::min_element(own.begin(), own.end());
        free += least;
        magnitude += std::abs(least);
        for (std::size_t k = 0; k < num_knobs_; ++k) of_group[k] += own[k];
      }
      cost_.push_back(std::move(of_group));
    }
    base_ = optimum.cost - error - free - kSumsRounding * (magnitude + std::abs(optimum.cost));
    // [knob][group]: at this knob or one that follows.
    rest_.assign(num_knobs_ + 1, std::vector<double>(groups.size(), kNoKnob));
    for (std::size_t k = num_knobs_; k-- > 0;) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        rest_[k][g] = std::min(rest_[k + 1][g], cost_[g][k]);
      }
    }
  }

  // The cheapest first. False: too many, or too much work to tell.
  bool List(int most, double below_joules, std::int64_t work, std::vector<Set>* sets) {
    below_joules_ = below_joules;
    work_ = work;
    kept_.assign(num_knobs_, false);
    sets_ = sets;
    if (!Extend(0, most, std::vector<double>(cost_.size(), kNoKnob))) return false;
    std::stable_sort(sets->begin(), sets->end(),
                     [](const Set& a, const Set& b) { return a.bound_joules < b.bound_joules; });
    return true;
  }

 private:
  double Bound(const std::vector<double>& least, const std::vector<double>& rest) {
    work_ -= static_cast<std::int64_t>(least.size());
    double sum = base_;
    for (std::size_t g = 0; g < least.size(); ++g) sum += std::min(least[g], rest[g]);
    return sum;
  }

  // Sets of the knobs so far, which leave `least` [group], and `left` of those from `knob` on.
  bool Extend(std::size_t knob, int left, const std::vector<double>& least) {
    const bool full = left == 0 || knob == num_knobs_;
    const double bound = Bound(least, rest_[full ? num_knobs_ : knob]);
    if (work_ < 0) return false;
    if (bound >= below_joules_) return true;
    if (full) {
      if (sets_->size() == kMostSets) return false;
      sets_->push_back({kept_, bound});
      return true;
    }
    std::vector<double> with = least;
    for (std::size_t g = 0; g < with.size(); ++g) with[g] = std::min(with[g], cost_[g][knob]);
    kept_[knob] = true;
    const bool goes_on = Extend(knob + 1, left - 1, with);
    kept_[knob] = false;
    // A set that might have one more is part of another.
    const bool all_fit = static_cast<std::size_t>(left) >= num_knobs_ - knob;
    return goes_on && (all_fit || Extend(knob + 1, left, least));
  }

  std::size_t num_knobs_;
  double base_ = 0;
  std::vector<std::vector<double>> cost_;  // [group][knob]
  std::vector<std::vector<double>> rest_;
  double below_joules_ = 0;
  std::int64_t work_ = 0;
  std::vector<bool> kept_;
  std::vector<Set>* sets_ = nullptr;
};

class SetSearch {
 public:
  SetSearch(const CostedPipeline& pipeline, double seconds, const Guard& guard, double effort,
            const TimeCostSchedule& optimum, double error, std::vector<CostOption> options)
      : pipeline_(pipeline),
        seconds_(seconds),
        guard_(guard),
        effort_(effort),
        optimum_(optimum),
        error_(error),
        best_(std::move(options)),
        joules_(EffectiveEnergyOf(pipeline, best_)) {}

  const std::vector<CostOption>& best() const { return best_; }

  // Betters the best by plans within the constraints. What none of them undercuts.
  struct Found {
    double bound_joules = -kNoKnob;
    bool proven = false;
    std::int64_t work = 0;
  };
  Found Solve(Granularity granularity, int most) {
    Found found;
    const std::vector<std::vector<int>> groups =
        GroupComputations(pipeline_, {.granularity = granularity});
    std::vector<KnobSets::Set> sets;
    if (!KnobSets(pipeline_, guard_, optimum_, error_, groups)
             .List(most, joules_, Work(kSetWork), &sets)) {
      return found;
    }
    found.proven = true;
    found.bound_joules = joules_;
    for (const KnobSets::Set& set : sets) {
      if (set.bound_joules >= joules_) break;
      const std::int64_t left = Work(kSolveWork) - found.work;
      if (left <= 0) {
        found.bound_joules = std::min(found.bound_joules, set.bound_joules);
        found.proven = false;
        break;
      }
      const CostedPipeline few = WithKnobsOnly(pipeline_, set.kept);
      const auto problem = GroupProblem::Make(few, guard_, groups, seconds_);
      if (!problem) continue;  // A group without a common knob.
      std::vector<std::vector<int>> starts = {std::vector<int>(groups.size(), 0)};
      if (auto choice = problem->ChoiceOf(best_)) starts.push_back(*std::move(choice));
      const GroupSolution solution = SolveGroups(*problem, starts, left, joules_);
      found.work += solution.work;
      found.bound_joules =
          std::min(found.bound_joules, std::max(solution.bound_joules, set.bound_joules));
      found.proven = found.proven && solution.proven;
      if (solution.choice.empty()) continue;
      best_ = problem->PlanOf(solution.choice);
      joules_ = solution.joules;
    }
    found.bound_joules = std::min(found.bound_joules, joules_);
    return found;
  }

 private:
  std::int64_t Work(double usual) const {
    return static_cast<std::int64_t>(std::min(effort_ * usual, kMostSolveWork));
  }

  const CostedPipeline& pipeline_;
  double seconds_;
  const Guard& guard_;
  double effort_;
  const TimeCostSchedule& optimum_;
  double error_;
  std::vector<CostOption> best_;
  double joules_;
};

}  // namespace

Result<GroupedPlan> BestOfKnobSets(const CostedPipeline& pipeline, double seconds,
                                   const PlanConstraints& constraints, double effort,
                                   std::vector<CostOption> options) {
  GroupedPlan best;
  best.options = std::move(options);
  best.lower_bound_effective_joules = -kNoKnob;
  if (HasDwell(constraints) || pipeline.dag.size() > kMostComputationsOfSets) return best;
  const Guard guard = GuardOf(constraints);
  double error = 0;
  const auto optimum = OptimumAt(pipeline, guard, seconds, 0, &error);
  if (!optimum) return tl::unexpected(optimum.error());
  SetSearch search(pipeline, seconds, guard, effort, *optimum, error, std::move(best.options));
  const Granularity asked = constraints.granularity;
  const SetSearch::Found found = search.Solve(asked, *constraints.max_knobs);
  best.lower_bound_effective_joules = found.bound_joules;
  best.proven = found.proven;
  best.work = found.work;
  if (!found.proven) {
    // Of what is allowed, too, and easier to prove: fewer knobs or a coarser granularity is then
    // not better.
    bool proven = false;
    for (int most = *constraints.max_knobs - 1; !proven && most > 0; --most) {
      const SetSearch::Found fewer = search.Solve(asked, most);
      best.work += fewer.work;
      proven = fewer.proven;
    }
    proven = false;
    for (Granularity at = asked; !proven && at != Granularity::kStage;) {
      at = Coarser(at);
      const SetSearch::Found coarser = search.Solve(at, *constraints.max_knobs);
      best.work += coarser.work;
      proven = coarser.proven;
    }
  }
  best.options = search.best();
  best.lower_bound_effective_joules =
      std::min(best.lower_bound_effective_joules, EffectiveEnergyOf(pipeline, best.options));
  return best;
}

}  // namespace perseus::plan
