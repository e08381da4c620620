// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/tree_filling.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "fleet/level_search.h"

namespace perseus::fleet {
namespace {

// Fills one tree; `Order` is one of level_search.h.
template <typename Order>
class TreeFiller {
 public:
  TreeFiller(const State& state, const Limits& limits)
      : state_(state), limits_(limits), levels_(state.nodes.size()), jobs_of_(state.nodes.size()) {
    for (std::size_t j = 0; j < state.members.size(); ++j) {
      const Member& member = state.members[j];
      filling_.x.push_back(member.curve.x.back());
      stops_.push_back({&member, {}, member.curve.watts.back()});
      governors_.push_back(state.nodes.size());
      for (const std::size_t n : LimitedNodes(member, limits)) jobs_of_[n].push_back(j);
    }
  }

  Filling Run() {
    for (const std::size_t n : state_.leaves_first) {
      if (!jobs_of_[n].empty()) FillNode(n);
    }
    SetPrices();
    return std::move(filling_);
  }

 private:
  void FillNode(std::size_t n) {
    std::vector<Filled> jobs;
    jobs.reserve(jobs_of_[n].size());
    for (const std::size_t j : jobs_of_[n]) jobs.push_back(stops_[j]);
    const KeyBracket bracket = FindKey<Order>(limits_[n], &jobs);
    if (!bracket.binds) return;
    if constexpr (std::is_same_v<Order, ValueOrder>) {
      levels_[n] = {bracket.broken, FractionOf(limits_[n], bracket, jobs)};
    } else {
      levels_[n] = {bracket.kept, 1};
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::size_t j = jobs_of_[n][i];
      if (levels_[n] < stops_[j].stop) Stop(j, n, jobs[i]);
    }
  }

  // Of the segments whose key is the first that breaks the limit, the part that is taken.
  static double FractionOf(double limit, const KeyBracket& bracket,
                           const std::vector<Filled>& jobs) {
    std::vector<std::pair<double, double>> parts;  // Where a node below stops it; watts.
    double sum = 0;
    for (const Filled& job : jobs) {
      const PowerCurve& curve = job.member->curve;
      const bool stopped = bracket.kept >= job.stop.key;
      sum += stopped ? job.stop_watts : curve.watts[job.low];
      if (stopped || job.high == job.low) continue;
      parts.emplace_back(job.stop.key == bracket.broken ? job.stop.fraction : 1,
                         curve.watts[job.high] - curve.watts[job.low]);
    }
    std::sort(parts.begin(), parts.end());
    double slope = 0;
    for (const auto& part : parts) slope += part.second;
    double fraction = 0;
    for (const auto& [stop, watts] : parts) {
      const double next = fraction + (limit - sum) / slope;
      if (next <= stop) return std::clamp(next, 0.0, 1.0);
      sum += slope * (stop - fraction);
      slope -= watts;
      fraction = stop;
    }
    return fraction;
  }

  void Stop(std::size_t j, std::size_t n, const Filled& job) {
    const PowerCurve& curve = job.member->curve;
    const Level& level = levels_[n];
    stops_[j].stop = level;
    governors_[j] = n;
    if constexpr (std::is_same_v<Order, ValueOrder>) {
      const double part = level.fraction;
      filling_.x[j] = curve.x[job.low] + part * (curve.x[job.high] - curve.x[job.low]);
      stops_[j].stop_watts =
          curve.watts[job.low] + part * (curve.watts[job.high] - curve.watts[job.low]);
    } else {
      filling_.x[j] = Order::Throughput(*job.member, level.key, job.low);
      stops_[j].stop_watts = Order::Watts(*job.member, level.key, job.low);
      if (job.low + 1 < curve.size() && level.key >= Order::FirstKey(*job.member)) {
        stops_[j].low = job.low;
        return;
      }
      governors_[j] = state_.nodes.size();  // At its least or its most: nothing holds it back.
    }
  }

  void SetPrices() {
    filling_.prices.assign(state_.nodes.size(), 0);
    if constexpr (std::is_same_v<Order, ValueOrder>) {
      // What holds a job back is the lowest level above it.
      for (auto n = state_.leaves_first.rbegin(); n != state_.leaves_first.rend(); ++n) {
        if (*n == 0) {
          filling_.prices[0] = 1 / levels_[0].key;
          continue;
        }
        const double above = levels_[state_.nodes[*n].parent].key;
        if (levels_[*n].key < above) {
          filling_.prices[*n] = 1 / levels_[*n].key - 1 / above;
        } else {
          levels_[*n].key = above;
        }
      }
      return;
    }
    for (std::size_t j = 0; j < governors_.size(); ++j) {
      if (governors_[j] == state_.nodes.size()) continue;
      const Member& member = *stops_[j].member;
      filling_.prices[governors_[j]] +=
          member.curve.SlopeAfter(stops_[j].low) * member.per_speed * member.weight;
    }
    for (double& price : filling_.prices) price = price > 0 ? 1 / price : 0;
  }

  const State& state_;
  const Limits& limits_;
  std::vector<Level> levels_;                      // [node]
  std::vector<std::vector<std::size_t>> jobs_of_;  // [node] that has a limit
  std::vector<Filled> stops_ = {};                 // [job]
  std::vector<std::size_t> governors_ = {};        // [job]: the node that holds it back.
  Filling filling_ = {};
};

}  // namespace

Filling FillTree(const State& state, const Limits& limits, FillOrder order) {
  return order == FillOrder::kValue ? TreeFiller<ValueOrder>(state, limits).Run()
                                    : TreeFiller<RatioOrder>(state, limits).Run();
}

}  // namespace perseus::fleet
