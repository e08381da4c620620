// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "fleet/check_site.h"
#include "fleet/site_state.h"

namespace perseus::fleet {
namespace {

// Where a job that has plans may wait after its slowest one, it does so in so many steps.
constexpr int kWaitingSteps = 64;

std::vector<PlanOption> OptionsOf(const FleetJob& job, double meter_factor,
                                  const PowerCurve& plan_curve) {
  const JobScale scale(job, meter_factor);
  std::vector<PlanOption> all;
  std::size_t slowest = 0;
  for (std::size_t p = 0; p < job.plans.size(); ++p) {
    if (job.plans[p].time_seconds > job.plans[slowest].time_seconds) slowest = p;
  }
  // One that is faster than late pipelines waits for them; so does one that must be slower.
  const auto add = [&](std::size_t p, double at) {
    const double x = 1 / job.plans[p].time_seconds;
    const double watts = job.plans[p].energy_joules / job.plans[p].time_seconds;
    const double waits = job.waiting_watts + (watts - job.waiting_watts) * (at / x);
    all.push_back({at, scale.WattsOfJob(at, waits), p});
  };
  for (std::size_t p = 0; p < job.plans.size(); ++p) {
    add(p, std::min(1 / job.plans[p].time_seconds, scale.fastest));
  }
  const double least = plan_curve.x.front();
  const double rest = std::min(1 / job.plans[slowest].time_seconds, scale.fastest);
  if (rest > least) {
    for (int i = 0; i < kWaitingSteps; ++i)
      add(slowest, least + (rest - least) * i / kWaitingSteps);
  }
  // What the owner does not accept goes; and what costs more watts for less throughput.
  std::erase_if(all, [&](const PlanOption& option) { return option.x < least * kWhole; });
  std::sort(all.begin(), all.end(), [](const PlanOption& a, const PlanOption& b) {
    if (a.watts != b.watts) return a.watts < b.watts;
    return a.x != b.x ? a.x > b.x : a.plan < b.plan;
  });
  std::vector<PlanOption> kept;
  for (const PlanOption& option : all) {
    if (kept.empty() || option.x > kept.back().x) kept.push_back(option);
  }
  return kept;
}

std::vector<PowerShare> NodesOf(const FleetJob& job, const State& state) {
  std::map<std::size_t, double> fractions;
  const std::vector<PowerShare> whole = {{0, 1.0}};
  for (const PowerShare& share : job.shares.empty() ? whole : job.shares) {
    if (share.fraction == 0) continue;
    for (std::size_t n = share.node;; n = state.nodes[n].parent) {
      fractions[n] += share.fraction;
      if (n == 0) break;
    }
  }
  std::vector<PowerShare> nodes;
  for (const std::size_t n : state.leaves_first) {
    if (const auto found = fractions.find(n); found != fractions.end()) {
      nodes.push_back({n, found->second > kWhole ? 1.0 : found->second});
    }
  }
  return nodes;
}

std::vector<std::size_t> LeavesFirst(const std::vector<NodeState>& nodes) {
  std::vector<std::size_t> depth(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (std::size_t up = n; up != 0; up = nodes[up].parent) ++depth[n];
  }
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depth[a] > depth[b]; });
  return order;
}

Member MakeMember(const PowerSite& site, std::size_t j, const State& state) {
  const FleetJob& job = site.jobs[j];
  Member member;
  member.label = JobLabel(site, j);
  if (job.plans.empty()) {
    member.curve = MakePowerCurve(job, site.meter_factor, job.frontier);
  } else {
    std::vector<IterationPoint> points = job.frontier;
    points.insert(points.end(), job.plans.begin(), job.plans.end());
    member.curve = MakePowerCurve(job, site.meter_factor, points);
    member.plan_curve = MakePowerCurve(job, site.meter_factor, job.plans);
    member.options = OptionsOf(job, site.meter_factor, member.plan_curve);
  }
  member.per_speed = 1 / job.full_speed_seconds;
  member.weight = job.weight;
  member.nodes = NodesOf(job, state);
  return member;
}

}  // namespace

Result<Limits> LimitsOf(const State& state, std::span<const double> limit_watts) {
  Limits limits;
  if (limit_watts.empty()) {
    for (const NodeState& node : state.nodes) limits.push_back(node.limit_watts);
    return limits;
  }
  if (limit_watts.size() != state.nodes.size()) {
    return InvalidInput(fmt::format("There are {} limits, but {} nodes: expected one for each.",
                                    limit_watts.size(), state.nodes.size()));
  }
  for (std::size_t n = 0; n < limit_watts.size(); ++n) {
    if (!(limit_watts[n] >= 0)) {
      return InvalidInput(fmt::format("{}: its limit is {} W, but expected watts, 0 or more.",
                                      state.nodes[n].label, limit_watts[n]));
    }
  }
  limits.assign(limit_watts.begin(), limit_watts.end());
  return limits;
}

std::vector<double> NodeWatts(const State& state, std::span<const double> watts) {
  std::vector<double> sums(state.nodes.size(), 0);
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    for (const PowerShare& share : state.members[j].nodes) {
      sums[share.node] += share.fraction * watts[j];
    }
  }
  return sums;
}

bool IsTree(const State& state, const Limits& limits) {
  return std::all_of(state.members.begin(), state.members.end(), [&](const Member& member) {
    return std::all_of(member.nodes.begin(), member.nodes.end(), [&](const PowerShare& share) {
      return share.fraction == 1 || std::isinf(limits[share.node]);
    });
  });
}

std::vector<std::size_t> LimitedNodes(const Member& member, const Limits& limits) {
  std::vector<std::size_t> nodes;
  for (const PowerShare& share : member.nodes) {
    if (share.fraction == 1 && !std::isinf(limits[share.node])) nodes.push_back(share.node);
  }
  return nodes;
}

PowerDivision DivisionAt(const State& state, const Throughputs& x) {
  PowerDivision division;
  std::vector<double> watts;
  watts.reserve(x.size());
  division.jobs.reserve(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Member& member = state.members[j];
    watts.push_back(member.curve.WattsAt(x[j]));
    JobShare& share = division.jobs.emplace_back();
    share.time_seconds = 1 / x[j];
    share.iterations_per_second = x[j];
    share.watts = watts.back() / state.meter_factor;
    share.speed = x[j] / member.per_speed;
  }
  for (const double sum : NodeWatts(state, watts)) division.nodes.push_back({sum, 0});
  return division;
}

}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

PreparedSite::PreparedSite(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<PreparedSite> PreparedSite::Make(const PowerSite& site) {
  if (auto fault = fleet::FaultOf(site)) return tl::unexpected<Error>(std::move(*fault));
  auto state = std::make_shared<State>();
  state->meter_factor = site.meter_factor;
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    state->nodes.push_back(
        {fleet::NodeLabel(site, n), site.nodes[n].parent.value_or(0), site.nodes[n].limit_watts});
  }
  state->leaves_first = fleet::LeavesFirst(state->nodes);
  std::map<std::string, std::size_t> tenants;
  state->members.reserve(site.jobs.size());
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    fleet::Member& member = state->members.emplace_back(fleet::MakeMember(site, j, *state));
    const std::string& tenant = site.jobs[j].tenant;
    member.tenant =
        tenant.empty() ? state->tenants : tenants.emplace(tenant, state->tenants).first->second;
    if (member.tenant == state->tenants) ++state->tenants;
  }
  return PreparedSite(std::move(state));
}

}  // namespace v0
}  // namespace perseus
