// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/fair_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "fleet/level_search.h"

namespace perseus::fleet {
namespace {

// The limit that is reached first holds its jobs; then the next. Holding jobs never makes another
// limit bind earlier, so a level is computed again only when its turn comes.
class ShareFiller {
 public:
  ShareFiller(const State& state, const Limits& limits)
      : state_(state),
        limits_(limits),
        rising_(state.members.size(), true),
        jobs_of_(limits.size()) {
    for (std::size_t j = 0; j < state.members.size(); ++j) {
      const Member& member = state.members[j];
      filling_.x.push_back(member.curve.x.front());
      most_ = std::max(most_, RatioOrder::LastKey(member));
      for (const PowerShare& share : member.nodes) {
        if (!std::isinf(limits[share.node])) jobs_of_[share.node].emplace_back(j, share.fraction);
      }
    }
    filling_.prices.assign(state.nodes.size(), 0);
  }

  Filling Run() {
    using Turn = std::pair<double, std::size_t>;  // Level, node.
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (std::size_t n = 0; n < jobs_of_.size(); ++n) {
      if (const auto level = LevelOf(n, 0)) turns.emplace(*level, n);
    }
    while (!turns.empty()) {
      const auto [known, n] = turns.top();
      turns.pop();
      const std::optional<double> level = LevelOf(n, known);
      if (!level) continue;
      if (*level > known) {
        turns.emplace(*level, n);
      } else {
        Hold(n, *level);
      }
    }
    for (std::size_t j = 0; j < rising_.size(); ++j) filling_.x[j] = ThroughputAt(j, most_);
    return std::move(filling_);
  }

 private:
  double ThroughputAt(std::size_t j, double ratio) const {
    if (!rising_[j]) return filling_.x[j];
    const Member& member = state_.members[j];
    return std::clamp(ratio * (member.per_speed * member.weight), member.curve.x.front(),
                      member.curve.x.back());
  }

  double WattsOf(std::size_t n, double ratio) const {
    double sum = 0;
    for (const auto& [j, fraction] : jobs_of_[n]) {
      sum += fraction * state_.members[j].curve.WattsAt(ThroughputAt(j, ratio));
    }
    return sum;
  }

  // The highest ratio that keeps a limit; `kept` is one that does. None: it holds nobody back. One
  // whose jobs all stay does not: rounding alone breaks it.
  std::optional<double> LevelOf(std::size_t n, double kept) const {
    const bool rises = std::any_of(jobs_of_[n].begin(), jobs_of_[n].end(),
                                   [&](const auto& job) { return rising_[job.first]; });
    if (!rises || WattsOf(n, most_) <= limits_[n]) return std::nullopt;
    auto low = std::bit_cast<std::uint64_t>(kept);
    auto high = std::bit_cast<std::uint64_t>(most_);
    while (low + 1 < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      (WattsOf(n, std::bit_cast<double>(middle)) <= limits_[n] ? low : high) = middle;
    }
    return std::bit_cast<double>(low);
  }

  void Hold(std::size_t n, double ratio) {
    double slope = 0;
    for (const auto& [j, fraction] : jobs_of_[n]) {
      if (!rising_[j]) continue;
      const Member& member = state_.members[j];
      filling_.x[j] = ThroughputAt(j, ratio);
      rising_[j] = false;
      if (ratio < RatioOrder::FirstKey(member) || ratio >= RatioOrder::LastKey(member)) continue;
      const std::size_t k = RatioOrder::Count(member, ratio, 0, member.curve.size() - 1);
      slope += fraction * member.curve.SlopeAfter(k) * member.per_speed * member.weight;
    }
    filling_.prices[n] = slope > 0 ? 1 / slope : 0;
  }

  const State& state_;
  const Limits& limits_;
  std::vector<bool> rising_;
  std::vector<std::vector<std::pair<std::size_t, double>>> jobs_of_;  // [node]: job, its fraction.
  double most_ = 0;                                                   // Of all ratios.
  Filling filling_ = {};
};

// All jobs of a tenant as one: weighted speed against watts, the cheapest segments first.
Member TenantOf(const std::vector<const Member*>& members) {
  std::vector<std::tuple<double, double, double>> segments;  // Key, weighted speed, watts.
  Member tenant;
  double x = 0;
  double watts = 0;
  double weight = 0;
  for (const Member* member : members) {
    const PowerCurve& curve = member->curve;
    x += member->ValueOf(curve.x.front());
    watts += curve.watts.front();
    weight += member->weight;
    for (std::size_t k = 0; k + 1 < curve.size(); ++k) {
      segments.emplace_back(ValueOrder::Key(*member, k),
                            member->ValueOf(curve.x[k + 1] - curve.x[k]),
                            curve.watts[k + 1] - curve.watts[k]);
    }
  }
  std::sort(segments.begin(), segments.end());
  tenant.curve = {{x}, {watts}};
  for (const auto& [key, speed, draws] : segments) {
    x += speed;
    watts += draws;
    if (x <= tenant.curve.x.back() || watts <= tenant.curve.watts.back()) continue;
    tenant.curve.x.push_back(x);
    tenant.curve.watts.push_back(watts);
  }
  tenant.per_speed = weight;
  tenant.nodes = {{0, 1.0}};
  return tenant;
}

}  // namespace

Filling FillShares(const State& state, const Limits& limits) {
  return ShareFiller(state, limits).Run();
}

Filling FillTenants(const State& state, double limit) {
  std::vector<std::vector<std::size_t>> jobs_of(state.tenants);
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    jobs_of[state.members[j].tenant].push_back(j);
  }
  State tenants;
  tenants.nodes = {NodeState{}};
  tenants.leaves_first = {0};
  for (const std::vector<std::size_t>& jobs : jobs_of) {
    std::vector<const Member*> members;
    members.reserve(jobs.size());
    for (const std::size_t j : jobs) members.push_back(&state.members[j]);
    tenants.members.push_back(TenantOf(members));
  }
  const Filling among = FillTree(tenants, {limit}, FillOrder::kRatio);
  Filling filling;
  filling.x.resize(state.members.size());
  for (std::size_t i = 0; i < jobs_of.size(); ++i) {
    State own;
    own.nodes = {NodeState{}};
    own.leaves_first = {0};
    for (const std::size_t j : jobs_of[i]) {
      own.members.push_back(state.members[j]);
      own.members.back().nodes = {{0, 1.0}};
    }
    const double watts = tenants.members[i].curve.WattsAt(among.x[i]);
    const Filling inside = FillTree(own, {watts}, FillOrder::kValue);
    for (std::size_t k = 0; k < jobs_of[i].size(); ++k) filling.x[jobs_of[i][k]] = inside.x[k];
  }
  filling.prices = among.prices;
  return filling;
}

}  // namespace perseus::fleet
