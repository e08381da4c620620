// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/fair_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "fleet/level_search.h"

namespace perseus::fleet {
namespace {

class ShareFiller {
 public:
  ShareFiller(const State& state, const Limits& limits)
      : state_(state), limits_(limits), rising_(state.members.size(), true) {
    for (const Member& member : state.members) filling_.x.push_back(member.curve.x.front());
    filling_.prices.assign(state.nodes.size(), 0);
  }

  Filling Run() {
    double most = 0;
    for (const Member& member : state_.members) most = std::max(most, RatioOrder::LastKey(member));
    std::uint64_t kept = 0;
    for (;;) {
      if (ReachedAt(most).empty()) {
        for (std::size_t j = 0; j < rising_.size(); ++j) filling_.x[j] = ThroughputAt(j, most);
        return std::move(filling_);
      }
      std::uint64_t broken = std::bit_cast<std::uint64_t>(most);
      while (broken - kept > 1) {
        const std::uint64_t middle = kept + (broken - kept) / 2;
        (ReachedAt(std::bit_cast<double>(middle)).empty() ? kept : broken) = middle;
      }
      if (broken <= kept) broken = kept + 1;
      for (const std::size_t n : ReachedAt(std::bit_cast<double>(broken))) {
        Hold(n, std::bit_cast<double>(kept));
      }
    }
  }

 private:
  double ThroughputAt(std::size_t j, double ratio) const {
    if (!rising_[j]) return filling_.x[j];
    const Member& member = state_.members[j];
    return std::clamp(ratio * (member.per_speed * member.weight), member.curve.x.front(),
                      member.curve.x.back());
  }

  // The limits that break at a ratio. One whose jobs all stay is none: rounding alone breaks it.
  std::vector<std::size_t> ReachedAt(double ratio) const {
    std::vector<double> watts;
    for (std::size_t j = 0; j < rising_.size(); ++j) {
      watts.push_back(state_.members[j].curve.WattsAt(ThroughputAt(j, ratio)));
    }
    const std::vector<double> sums = NodeWatts(state_, watts);
    std::vector<std::size_t> reached;
    for (std::size_t n = 0; n < sums.size(); ++n) {
      if (sums[n] > limits_[n] && Rises(n)) reached.push_back(n);
    }
    return reached;
  }

  bool Rises(std::size_t n) const {
    for (std::size_t j = 0; j < rising_.size(); ++j) {
      if (rising_[j] && FractionIn(j, n) > 0) return true;
    }
    return false;
  }

  double FractionIn(std::size_t j, std::size_t n) const {
    for (const PowerShare& share : state_.members[j].nodes) {
      if (share.node == n) return share.fraction;
    }
    return 0;
  }

  void Hold(std::size_t n, double ratio) {
    double slope = 0;
    for (std::size_t j = 0; j < rising_.size(); ++j) {
      const double fraction = FractionIn(j, n);
      if (!rising_[j] || fraction == 0) continue;
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
