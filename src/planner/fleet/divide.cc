// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fleet/fair_shares.h"
#include "fleet/plan_moves.h"
#include "fleet/plan_walk.h"
#include "fleet/program_division.h"
#include "fleet/shortages.h"
#include "fleet/site_state.h"
#include "fleet/tree_filling.h"

namespace perseus::fleet {
namespace {

double ObjectiveOf(const State& state, const std::vector<JobShare>& jobs,
                   FleetObjective objective) {
  if (jobs.empty()) return 0;
  double sum = 0;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> speeds(state.tenants, 0);
  std::vector<double> weights(state.tenants, 0);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Member& member = state.members[j];
    sum += member.weight * jobs[j].speed;
    least = std::min(least, jobs[j].speed / member.weight);
    speeds[member.tenant] += member.weight * jobs[j].speed;
    weights[member.tenant] += member.weight;
  }
  if (objective == FleetObjective::kThroughput) return sum;
  if (objective == FleetObjective::kMaxMin) return least;
  least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < speeds.size(); ++i) least = std::min(least, speeds[i] / weights[i]);
  return least;
}

// The tightest limit, if every limit holds all of each job.
struct OneLimit {
  bool found = false;
  std::size_t node = 0;
  double watts = kNoPowerLimit;
};

OneLimit FindOneLimit(const State& state, const Limits& limits) {
  OneLimit one = {true};
  for (std::size_t n = 0; n < limits.size(); ++n) {
    if (std::isinf(limits[n])) continue;
    std::size_t inside = 0;
    std::size_t touching = 0;
    for (const Member& member : state.members) {
      for (const PowerShare& share : member.nodes) {
        touching += share.node == n;
        inside += share.node == n && share.fraction == 1;
      }
    }
    if (touching == 0) continue;
    if (inside < state.members.size()) return {};
    if (limits[n] < one.watts) one = {true, n, limits[n]};
  }
  return one;
}

Result<Filling> Fill(const State& state, const Limits& limits, FleetObjective objective) {
  const bool tree = IsTree(state, limits);
  if (objective == FleetObjective::kThroughput) {
    if (tree) return FillTree(state, limits, FillOrder::kValue);
    return ThroughputProgram(state, limits);
  }
  if (objective == FleetObjective::kMaxMin) {
    return tree ? FillTree(state, limits, FillOrder::kRatio) : FillShares(state, limits);
  }
  const OneLimit one = FindOneLimit(state, limits);
  if (!one.found) return TenantsProgram(state, limits);
  Filling filling = FillTenants(state, one.watts);
  filling.prices.resize(limits.size(), 0);
  std::swap(filling.prices[0], filling.prices[one.node]);
  return filling;
}

// Sums round. Moves jobs towards their least by as little as keeps all limits.
Throughputs Kept(const State& state, const Limits& limits, const PowerDivision& division,
                 Throughputs x) {
  const std::vector<double> least = NodeWatts(state, LeastOfCurves(state));
  std::vector<double> parts(limits.size(), 0);  // [node]
  for (std::size_t n = 0; n < limits.size(); ++n) {
    const double above = division.nodes[n].watts - limits[n];
    if (above <= 0) continue;
    const double most = division.nodes[n].watts - least[n];
    // Once more what this sum may round by.
    parts[n] = most > above ? std::min(1.0, above / most + 1e-15) : 1;
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    double part = 0;
    for (const PowerShare& share : state.members[j].nodes) part = std::max(part, parts[share.node]);
    x[j] -= part * (x[j] - state.members[j].curve.x.front());
  }
  return x;
}

PowerDivision DivisionOf(const State& state, const Limits& limits, const Filling& filling,
                         FleetObjective objective) {
  PowerDivision division = DivisionAt(state, filling.x);
  division = DivisionAt(state, Kept(state, limits, division, filling.x));
  for (std::size_t n = 0; n < limits.size(); ++n) {
    division.nodes[n].price_per_watt = filling.prices[n];
  }
  division.objective = ObjectiveOf(state, division.jobs, objective);
  return division;
}

Result<PowerDivision> BoundOf(const State& state, const Limits& limits, FleetObjective objective) {
  if (auto shortage = FirstShortage(state, limits, LeastOfCurves(state))) {
    return tl::unexpected<Error>(std::move(*shortage));
  }
  if (state.members.empty()) return DivisionAt(state, {});
  const Result<Filling> filling = Fill(state, limits, objective);
  if (!filling) return tl::unexpected<Error>(filling.error());
  return DivisionOf(state, limits, *filling, objective);
}

// Divides what plans leave among the jobs that have none.
Result<PowerDivision> DivideRest(const State& state, const Limits& limits, FleetObjective objective,
                                 const std::vector<double>& watts) {
  State rest;
  rest.nodes = state.nodes;
  rest.leaves_first = state.leaves_first;
  rest.tenants = state.tenants;
  rest.meter_factor = state.meter_factor;
  std::vector<double> taken = watts;
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    if (!state.members[j].options.empty()) continue;
    rest.members.push_back(state.members[j]);
    taken[j] = 0;
  }
  // Tenants without such a job would count as ratios of nothing.
  std::vector<std::size_t> numbers(state.tenants, state.tenants);
  rest.tenants = 0;
  for (Member& member : rest.members) {
    std::size_t& number = numbers[member.tenant];
    if (number == state.tenants) number = rest.tenants++;
    member.tenant = number;
  }
  Limits left = limits;
  const std::vector<double> sums = NodeWatts(state, taken);
  // The least of these jobs fits: what is missing of it is the rounding of the difference.
  const std::vector<double> least = NodeWatts(rest, LeastOfCurves(rest));
  for (std::size_t n = 0; n < left.size(); ++n) left[n] = std::max(least[n], left[n] - sums[n]);
  return BoundOf(rest, left, objective);
}

Result<PowerDivision> PlansOf(const State& state, const Limits& limits, FleetObjective objective) {
  const OptionTable options = OptionsOfAll(state);
  const std::vector<std::size_t> choices =
      objective == FleetObjective::kThroughput
          ? ThroughputChoices(state, limits, options)
          : FairChoices(state, limits, options, objective == FleetObjective::kMaxMinTenants);
  std::vector<double> watts;
  bool rest = false;
  for (std::size_t j = 0; j < choices.size(); ++j) {
    watts.push_back(options[j][choices[j]].watts);
    rest = rest || state.members[j].options.empty();
  }
  PowerDivision of_rest;
  if (rest) {
    Result<PowerDivision> divided = DivideRest(state, limits, objective, watts);
    if (!divided) return divided;
    of_rest = std::move(*divided);
  }
  PowerDivision division;
  std::size_t next = 0;
  for (std::size_t j = 0; j < choices.size(); ++j) {
    JobShare& share = division.jobs.emplace_back();
    if (state.members[j].options.empty()) {
      share = of_rest.jobs[next++];
      watts[j] = share.watts * state.meter_factor;
      continue;
    }
    const PlanOption& option = options[j][choices[j]];
    share.time_seconds = 1 / option.x;
    share.iterations_per_second = option.x;
    share.watts = option.watts / state.meter_factor;
    share.speed = option.x / state.members[j].per_speed;
    share.plan = option.plan;
    share.other_plan = option.plan;
  }
  for (const double sum : NodeWatts(state, watts)) division.nodes.push_back({sum, 0});
  division.objective = ObjectiveOf(state, division.jobs, objective);
  return division;
}

}  // namespace
}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

Result<PowerDivision> PreparedSite::DivideBound(FleetObjective objective,
                                                std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  return fleet::BoundOf(*state_, *limits, objective);
}

Result<FleetAnswer> PreparedSite::Divide(FleetObjective objective,
                                         std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  if (auto shortage = fleet::FirstShortage(*state_, *limits, fleet::LeastOfPlans(*state_))) {
    return tl::unexpected<Error>(std::move(*shortage));
  }
  Result<PowerDivision> bound = fleet::BoundOf(*state_, *limits, objective);
  if (!bound) return tl::unexpected<Error>(bound.error());
  const bool has_plans =
      std::any_of(state_->members.begin(), state_->members.end(),
                  [](const fleet::Member& member) { return !member.options.empty(); });
  if (!has_plans) {
    PowerDivision same = *bound;
    return FleetAnswer{std::move(*bound), std::move(same)};
  }
  Result<PowerDivision> plans = fleet::PlansOf(*state_, *limits, objective);
  if (!plans) return tl::unexpected<Error>(plans.error());
  return FleetAnswer{std::move(*bound), std::move(*plans)};
}

Result<std::vector<PowerShortage>> PreparedSite::Shortages(
    std::span<const double> limit_watts) const {
  const Result<fleet::Limits> limits = fleet::LimitsOf(*state_, limit_watts);
  if (!limits) return tl::unexpected<Error>(limits.error());
  return fleet::ShortagesOf(*state_, *limits, fleet::LeastOfPlans(*state_));
}

Result<std::vector<PowerShortage>> FindShortages(const PowerSite& site) {
  const Result<PreparedSite> prepared = PreparedSite::Make(site);
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  return prepared->Shortages();
}

Result<FleetAnswer> DividePower(const PowerSite& site, FleetObjective objective) {
  const Result<PreparedSite> prepared = PreparedSite::Make(site);
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  return prepared->Divide(objective);
}

}  // namespace v0
}  // namespace perseus
