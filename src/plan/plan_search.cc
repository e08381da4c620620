// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "frontier/walk.h"
#include "plan/chosen_options.h"
#include "plan/cost_options.h"
#include "plan/grouped_plan.h"
#include "plan/grouping.h"
#include "plan/option_search.h"
#include "plan/time_cost_problem.h"

namespace perseus::plan {
namespace {

using frontier::Network;

// Units of search work that take about a second, for a pipeline of this size.
constexpr double kWorkPerPlan = 2.6e8;
constexpr double kComputationsPerPlan = 1536;

// Sums of doubles and of ticks along a path differ by far less than this.
constexpr double kSameTime = 1e-12;

// More work than anybody will wait for.
constexpr double kMostWork = 1e16;

tl::unexpected<Error> NothingFound(double seconds) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("no plan within these constraints was found for {:.6g} s; give more "
                               "time or relax them",
                               seconds));
}

}  // namespace

Result<std::vector<CostOption>> SearchPlan(const CostedPipeline& costs, double slope_quantum,
                                           double seconds, const PlanConstraints& constraints,
                                           double effort) {
  if (SharesKnobs(costs, constraints)) {
    auto grouped = SearchGroups(costs, seconds, constraints, effort);
    if (!grouped) return tl::unexpected(grouped.error());
    return std::move(grouped->options);
  }
  const Guard guard = {constraints.time_margin_sigmas, constraints.time_margin_fraction};
  auto problem = MakeTimeCostProblem(costs, guard);
  if (!problem) return tl::unexpected(problem.error());
  // Rounded slopes only where the walk would take too long: the bounds of the
  // search are then exact.
  auto network =
      Network::Build(*problem, costs.dag.size() > kCoarseComputations ? slope_quantum : 0);
  if (!network) return tl::unexpected(network.error());

  // The grid and Replay() add up a path with different roundings: a plan that
  // takes just `seconds` may take a hair more on the grid. ChosenOptions
  // decides in the end.
  frontier::Walk walk(*network);
  const double slowest = network->scale.Time(walk.time());
  const double most = seconds * (1 + kSameTime);
  const std::int64_t deadline = most >= slowest ? walk.time() : network->scale.TicksDown(most);
  while (!walk.at_fastest() && walk.next_time() > deadline) walk.Advance();
  const std::int64_t start = walk.at_fastest() ? walk.time() : std::min(walk.time(), deadline);
  if (deadline < start && network->scale.Time(start) > seconds * (1 + kSameTime)) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no plan within these constraints takes {:.6g} s; the fastest one "
                                 "takes at least {:.6g} s",
                                 seconds, network->scale.Time(start)));
  }
  frontier::DeadlineProgram program(*network, walk, start);
  const std::int64_t within = std::max(start, deadline);
  if (within > start) {
    program.SetDeadline(within);
    program.Optimise(frontier::kNoLimit);
  }

  SearchSpace space;
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    space.options.push_back(GridOptions(costs.tables[t], costs.knobs.size(), guard, network->scale,
                                        network->curves[t].slowest_cost,
                                        network->scale.Time(within)));
  }
  Grouping grouping = GroupComputations(costs, {});
  for (const std::vector<int>& members : grouping.members) {
    auto knobs = CommonKnobs(costs, guard, members);
    if (!knobs) return tl::unexpected(knobs.error());
    // A group is on one rank, so its members' times add up.
    std::erase_if(*knobs, [&](int knob) {
      frontier::Int128 length = 0;
      for (const int i : members) {
        const GridOption& option = space.options[costs.table_of[i]][knob];
        if (option.length < 0) return true;
        length += option.length;
      }
      return length > within;
    });
    if (knobs->empty()) return NothingFound(seconds);
    space.knobs.push_back(*std::move(knobs));
  }
  space.groups = std::move(grouping.members);
  space.next_group = std::move(grouping.next);

  const double full_work =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const double work = std::min(effort * full_work, kMostWork);
  auto knobs = SearchOptions(*network, std::move(program), space, static_cast<std::int64_t>(work),
                             static_cast<std::int64_t>(full_work));
  if (!knobs) return NothingFound(seconds);

  ChosenOptions chosen(costs, guard, space.groups, space.knobs, *knobs);
  if (!chosen.MeetDeadline(seconds)) return NothingFound(seconds);
  chosen.ReclaimSlack(seconds);
  return chosen.options();
}

}  // namespace perseus::plan
