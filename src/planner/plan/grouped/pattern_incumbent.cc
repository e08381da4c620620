// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/pattern_incumbent.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "perseus/plan.h"
#include "plan/grouped/group_branch.h"

namespace perseus::plan {
namespace {

constexpr std::int64_t kCutsWork = 20'000'000;  // For one way to cut.
constexpr int kPriceSteps = 12;                 // For one with fewer changes.
constexpr double kFirstPrice = 1e4;             // Of a change, in tolerances.

}  // namespace

PatternIncumbent::PatternIncumbent(RankPatterns* patterns, const Guard& guard,
                                   const PatternProblem& problem, const GroupProblem& timing)
    : patterns_(*patterns),
      pipeline_(patterns->pipeline()),
      guard_(guard),
      problem_(problem),
      timing_(timing) {}

double PatternIncumbent::ChangesOf(const std::vector<int>& knobs) const {
  return problem_.most_changes ? CountKnobChanges(pipeline_.dag, knobs)->all() : 0;
}

bool PatternIncumbent::ChangesTooOften(const std::vector<int>& knobs) const {
  return problem_.most_changes && ChangesOf(knobs) > static_cast<double>(*problem_.most_changes);
}

std::vector<int> PatternIncumbent::WithFewerChanges(const RankPatterns::Allowed& allowed,
                                                    RankPatterns::Prices prices) {
  std::vector<int> knobs;
  std::vector<int> found;
  double low = prices.change_joules;
  double high = 2 * low + kFirstPrice * problem_.tolerance_joules;
  for (int k = 0; k < kPriceSteps && found.empty(); ++k) {
    prices.change_joules = high;
    patterns_.Cheapest(allowed, prices, &knobs);
    if (ChangesTooOften(knobs)) {
      low = high;
      high *= 4;
    } else {
      found = knobs;
    }
  }
  for (int k = 0; k < kPriceSteps && !found.empty(); ++k) {
    prices.change_joules = (low + high) / 2;
    patterns_.Cheapest(allowed, prices, &knobs);
    if (ChangesTooOften(knobs)) {
      low = prices.change_joules;
    } else {
      high = prices.change_joules;
      found = knobs;
    }
  }
  return found;
}

// Where changes are limited, the last stretch of a rank and its first of the next iteration are one
// if they share a knob.
std::vector<std::vector<int>> PatternIncumbent::StretchesOf(const std::vector<int>& knobs) const {
  std::vector<std::vector<int>> groups;
  for (const std::vector<int>& order : pipeline_.dag.rank_order) {
    const std::size_t first = groups.size();
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || knobs[order[k]] != knobs[order[k - 1]]) groups.emplace_back();
      groups.back().push_back(order[k]);
    }
    if (problem_.most_changes && groups.size() > first + 1 &&
        knobs[order.front()] == knobs[order.back()]) {
      groups[first].insert(groups[first].end(), groups.back().begin(), groups.back().end());
      groups.pop_back();
    }
  }
  for (std::vector<int>& members : groups) std::sort(members.begin(), members.end());
  return groups;
}

void PatternIncumbent::TryCuts(const RankPatterns::Allowed& allowed,
                               const RankPatterns::Prices& prices, std::vector<int> knobs,
                               std::int64_t work_limit) {
  if (ChangesTooOften(knobs)) knobs = WithFewerChanges(allowed, prices);
  if (knobs.empty()) return;
  const auto [groups, is_new] = tried_.insert(StretchesOf(knobs));
  if (!is_new) return;
  const auto problem = GroupProblem::Make(pipeline_, guard_, *groups, problem_.seconds);
  if (!problem) return;
  // What is dearer may end earlier, and so be better after all.
  const double below = problem_.waiting_watts > 0 ? RankPatterns::kNoWay : joules_;
  const GroupSolution found = SolveGroups(*problem, {std::vector<int>(problem->num_groups(), 0)},
                                          std::min(kCutsWork, work_limit), below);
  work_ += found.work;
  if (!found.choice.empty()) Offer(problem->PlanOf(found.choice));
}

void PatternIncumbent::TryOnly(const RankPatterns::Allowed& allowed) {
  std::vector<int> knobs;
  const RankPatterns::Prices free = {.watts = std::vector<double>(pipeline_.dag.size(), 0)};
  if (patterns_.Cheapest(allowed, free, &knobs) == RankPatterns::kNoWay) return;
  std::vector<CostOption> options;
  options.reserve(knobs.size());
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    options.push_back(*FindOption(pipeline_.TableOf(i), knobs[i]));
  }
  Offer(std::move(options));
}

void PatternIncumbent::Offer(std::vector<CostOption> options) {
  std::vector<double> seconds;
  std::vector<int> knobs;
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    knobs.push_back(options[i].knob);
    seconds.push_back(patterns_.Seconds(i, options[i].knob));
  }
  const double end = timing_.LongestPath(seconds, nullptr);
  if (end > problem_.seconds || ChangesTooOften(knobs)) return;
  const double joules =
      EffectiveEnergyOf(pipeline_, options) + problem_.waiting_watts * (end - problem_.seconds);
  if (!(joules < joules_)) return;
  options_ = std::move(options);
  joules_ = joules;
}

}  // namespace perseus::plan
