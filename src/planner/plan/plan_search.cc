// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "plan/bound/block_bound.h"
#include "plan/chosen_options.h"
#include "plan/cost_options.h"
#include "plan/search/option_search.h"
#include "plan/search/time_cost_problem.h"
#include "plan/search/window_search.h"

namespace perseus::plan {
namespace {

using frontier::Network;

// Units of search work that take about a second, for a pipeline of this size.
constexpr double kWorkPerPlan = 8e7;
// Windows do with less: what they begin from is nearly right.
constexpr double kWindowShare = 0.75;
constexpr double kComputationsPerPlan = 1536;

// More work than anybody will wait for.
constexpr double kMostWork = 1e16;

// Up to so many computations the search is by branch and bound.
constexpr int kMostToBranch = 64;

tl::unexpected<Error> NothingFound(double seconds) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("no plan within these constraints was found for {:.6g} s; give more "
                               "time or relax them",
                               seconds));
}

// The choices of a plan that ends within `most_ticks`.
Result<SearchSpace> MakeSearchSpace(const CostedPipeline& costs, const WalkedPipeline& walked,
                                    std::int64_t most_ticks, double seconds) {
  const Network& network = walked.network();
  SearchSpace space;
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    space.options.push_back(GridOptions(costs.tables[t], costs.knobs.size(), walked.guard(),
                                        network.scale, network.curves[t].slowest_cost,
                                        network.scale.Time(most_ticks)));
  }
  std::vector<std::vector<int>> knobs_of(costs.tables.size());
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    for (const CostOption& option : ParetoOptions(costs.tables[t], walked.guard())) {
      const std::int64_t length = space.options[t][option.knob].length;
      if (length >= 0 && length <= most_ticks) knobs_of[t].push_back(option.knob);
    }
  }
  for (const int table : costs.table_of) {
    if (knobs_of[table].empty()) return NothingFound(seconds);
    space.knobs.push_back(knobs_of[table]);
  }
  space.next.assign(costs.table_of.size(), -1);
  for (const std::vector<int>& order : costs.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) space.next[order[k - 1]] = order[k];
  }
  return space;
}

}  // namespace

Result<std::shared_ptr<const WalkedPipeline>> WalkedPipeline::Make(const CostedPipeline& costs,
                                                                   const Guard& guard,
                                                                   double slope_quantum) {
  auto problem = MakeTimeCostProblem(costs, guard);
  if (!problem) return tl::unexpected(problem.error());
  // Rounded slopes only where the walk would take too long: the bounds of the
  // search are then exact.
  auto network =
      Network::Build(*problem, costs.dag.size() > kCoarseComputations ? slope_quantum : 0);
  if (!network) return tl::unexpected(network.error());
  std::shared_ptr<WalkedPipeline> walked(new WalkedPipeline);
  walked->guard_ = guard;
  walked->network_ = std::make_unique<const Network>(*std::move(network));
  walked->ladder_ = std::make_unique<const frontier::WalkLadder>(*walked->network_);
  return walked;
}

Result<std::vector<CostOption>> SearchPlan(const CostedPipeline& costs,
                                           const WalkedPipeline& walked, double seconds,
                                           double effort, const OptionsReport& report) {
  const Network& network = walked.network();
  const frontier::WalkLadder& ladder = walked.ladder();
  // The grid and Replay() add up a path with different roundings: a plan that
  // takes just `seconds` may take a hair more on the grid. ChosenOptions
  // decides in the end.
  const double slowest = network.scale.Time(ladder.slowest_time());
  const double most = seconds * (1 + kSameTime);
  std::int64_t deadline = most >= slowest ? ladder.slowest_time() : network.scale.TicksDown(most);
  if (deadline < ladder.fastest_time() && network.scale.Time(ladder.fastest_time()) > most) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no plan within these constraints takes {:.6g} s; the fastest one "
                                 "takes at least {:.6g} s",
                                 seconds, network.scale.Time(ladder.fastest_time())));
  }
  deadline = std::max(deadline, ladder.fastest_time());
  frontier::DeadlineProgram program = ladder.ProgramAt(deadline);
  auto space = MakeSearchSpace(costs, walked, deadline, seconds);
  if (!space) return tl::unexpected(space.error());

  const double usual =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const bool branches = space->size() <= kMostToBranch;
  const double work = std::min(effort * usual * (branches ? 1 : kWindowShare), kMostWork);
  const SearchBudget budget = {.usual = static_cast<std::int64_t>(usual),
                               .limit = static_cast<std::int64_t>(work)};
  std::vector<CostOption> best;
  double best_joules = 0;
  const auto keep = [&](const std::vector<int>& knobs) {
    ChosenOptions chosen(costs, walked.guard(), space->knobs, knobs);
    if (!chosen.MeetDeadline(seconds)) return false;
    chosen.ReclaimSlack(seconds);
    const double joules = EffectiveEnergyOf(costs, chosen.options());
    if (!best.empty() && !(joules < best_joules)) return false;
    best = chosen.options();
    best_joules = joules;
    return true;
  };
  const ChoiceReport choice_report = [&](const std::vector<int>* better, std::int64_t done) {
    const bool kept = better != nullptr && keep(*better);
    const double share = work > 0 ? std::min(1.0, static_cast<double>(done) / work) : 1;
    return !report || report(kept ? &best : nullptr, share);
  };
  if (branches) {
    SearchOptions(network, std::move(program), *space, budget, choice_report);
  } else {
    SearchWindows(network, program, deadline, *space, budget, choice_report);
  }
  if (best.empty()) return NothingFound(seconds);
  return best;
}

Result<EffectiveBound> BoundPlans(const CostedPipeline& costs, const WalkedPipeline& walked,
                                  double seconds, double effort) {
  const Network& network = walked.network();
  const frontier::WalkLadder& ladder = walked.ladder();
  EffectiveBound bound;
  double rounding = 0;
  double slowest_cost = 0;
  for (const int c : network.curve_of) {
    const frontier::Curve& curve = network.curves[c];
    slowest_cost += curve.slowest_cost;
    rounding += curve.cost_above + curve.cost_below +
                kSameTime * (std::abs(curve.slowest_cost) + network.scale.Cost(curve.costs.back()));
  }
  // As a search does: a plan may take a hair more on the grid than it really does.
  const double most = seconds * (1 + kSameTime);
  std::int64_t deadline = most >= network.scale.Time(ladder.slowest_time())
                              ? ladder.slowest_time()
                              : network.scale.TicksDown(most);
  deadline = std::max(deadline, ladder.fastest_time());
  const frontier::DeadlineProgram program = ladder.ProgramAt(deadline);
  bound.relaxed_joules = slowest_cost + network.scale.Cost(program.objective()) - rounding;
  auto space = MakeSearchSpace(costs, walked, deadline, seconds);
  if (!space) return tl::unexpected(space.error());
  const double usual =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const BlockBound blocks =
      BoundByBlocks(network, program, deadline, *space, costs.dag.rank_order,
                    static_cast<std::int64_t>(std::min(effort * usual, kMostWork)), effort > 1);
  bound.discrete_joules = bound.relaxed_joules + network.scale.Cost(blocks.gain);
  bound.blocks = blocks.blocks;
  bound.proven = blocks.proven;
  return bound;
}

}  // namespace perseus::plan
