// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/plan_walk.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace perseus::fleet {
namespace {

// A curve without plans is represented by so many of its corners.
constexpr std::size_t kCurveOptions = 64;
// Sums may round by this part of a limit.
constexpr double kLimitRounding = 1e-12;

// What rises together: one job, or the jobs of a tenant.
struct Group {
  std::vector<PlanStep> steps = {};
  std::size_t next = 0;
  double ratio = 0;
  double weight = 0;  // What a unit of ratio is, in speed of a job or weighted speed of a tenant.
};

// All options of a job, one after the other.
std::vector<PlanStep> AllSteps(const OptionTable& options, std::size_t job) {
  std::vector<PlanStep> steps;
  for (std::size_t i = 0; i + 1 < options[job].size(); ++i) steps.push_back({0, job, i, i + 1});
  return steps;
}

std::vector<Group> GroupsOf(const State& state, const OptionTable& options, bool by_tenant) {
  std::vector<Group> groups(by_tenant ? state.tenants : state.members.size());
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    const Member& member = state.members[j];
    Group& group = groups[by_tenant ? member.tenant : j];
    group.weight += member.weight;
    group.ratio += (by_tenant ? member.weight : 1) * (options[j][0].x / member.per_speed);
    const std::vector<PlanStep> steps =
        by_tenant ? HullSteps(state, options, j) : AllSteps(options, j);
    group.steps.insert(group.steps.end(), steps.begin(), steps.end());
  }
  for (Group& group : groups) {
    group.ratio /= group.weight;
    std::stable_sort(group.steps.begin(), group.steps.end(),
                     [](const PlanStep& a, const PlanStep& b) { return a.key < b.key; });
  }
  return groups;
}

}  // namespace

OptionTable OptionsOfAll(const State& state) {
  OptionTable options;
  for (const Member& member : state.members) {
    options.push_back(member.options);
    if (!member.options.empty()) continue;
    const PowerCurve& curve = member.curve;
    const std::size_t last = curve.size() - 1;
    const std::size_t parts = std::min(last, kCurveOptions);
    for (std::size_t i = 0; i <= parts; ++i) {
      const std::size_t k = parts == 0 ? 0 : last * i / parts;
      options.back().push_back({curve.x[k], curve.watts[k], 0});
    }
  }
  return options;
}

std::vector<PlanStep> HullSteps(const State& state, const OptionTable& options, std::size_t job) {
  const Member& member = state.members[job];
  const std::vector<PlanOption>& all = options[job];
  std::vector<PlanStep> steps;
  const auto key = [&](std::size_t from, std::size_t to) {
    return (all[to].watts - all[from].watts) / member.ValueOf(all[to].x - all[from].x);
  };
  for (std::size_t i = 1; i < all.size(); ++i) {
    while (!steps.empty() && key(steps.back().to, i) <= steps.back().key) steps.pop_back();
    const std::size_t from = steps.empty() ? 0 : steps.back().to;
    steps.push_back({key(from, i), job, from, i});
  }
  return steps;
}

Selection::Selection(const State& state, const Limits& limits, const OptionTable& options)
    : state_(state), options_(options), choices_(options.size(), 0) {
  for (const double limit : limits) limits_.push_back(limit * (1 + kLimitRounding));
  std::vector<double> watts;
  watts.reserve(options.size());
  for (const std::vector<PlanOption>& of_job : options) watts.push_back(of_job[0].watts);
  loads_ = NodeWatts(state, watts);
}

double Selection::Room(std::size_t job, std::size_t first) const {
  double room = std::numeric_limits<double>::infinity();
  for (const PowerShare& share : state_.members[job].nodes) {
    if (share.node < first) continue;
    room = std::min(room, (limits_[share.node] - loads_[share.node]) / share.fraction);
  }
  return room;
}

bool Selection::FitsSite(double watts) const { return loads_[0] + watts <= limits_[0]; }

void Selection::Choose(std::size_t job, std::size_t option) {
  const double more = options_[job][option].watts - options_[job][choices_[job]].watts;
  for (const PowerShare& share : state_.members[job].nodes) {
    loads_[share.node] += share.fraction * more;
  }
  choices_[job] = option;
}

std::vector<std::size_t> FairChoices(const State& state, const Limits& limits,
                                     const OptionTable& options, bool by_tenant) {
  Selection selection(state, limits, options);
  std::vector<Group> groups = GroupsOf(state, options, by_tenant);
  using Turn = std::pair<double, std::size_t>;  // Ratio, group.
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (std::size_t g = 0; g < groups.size(); ++g) turns.emplace(groups[g].ratio, g);
  while (!turns.empty()) {
    const std::size_t g = turns.top().second;
    Group& group = groups[g];
    turns.pop();
    if (group.next == group.steps.size()) continue;
    const PlanStep& step = group.steps[group.next];
    const PlanOption& from = options[step.job][step.from];
    const PlanOption& to = options[step.job][step.to];
    if (to.watts - from.watts > selection.Room(step.job)) continue;
    selection.Choose(step.job, step.to);
    ++group.next;
    const Member& member = state.members[step.job];
    group.ratio +=
        (by_tenant ? member.weight : 1) * (to.x - from.x) / member.per_speed / group.weight;
    turns.emplace(group.ratio, g);
  }
  return selection.choices();
}

}  // namespace perseus::fleet
