// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/group_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>

namespace perseus::plan {
namespace {

using frontier::Int128;
using frontier::Network;

constexpr std::int64_t kMostStepsPerChoice = 4000;
constexpr int kLongestStep = 3;     // Knobs that a step may skip.
constexpr double kExcessPrice = 3;  // Times the price of time.
// The threshold falls to zero once from each of these, times the mean change of
// a step.
constexpr std::array<double, 4> kFirstThresholds = {16, 8, 4, 2};

// Longest paths for one set of durations after another.
class PathLength {
 public:
  explicit PathLength(const Network& network) : network_(network) {
    const int n = network.num_activities;
    first_.assign(n + 1, 0);
    earliest_.assign(n, 0);
    for (std::size_t a = n; a < network.arcs.size(); ++a) {
      if (network.arcs[a].tail >= 2 && network.arcs[a].head >= 2) {
        ++first_[Activity(network.arcs[a].head) + 1];
      }
    }
    for (int i = 0; i < n; ++i) first_[i + 1] += first_[i];
    arcs_.resize(first_[n]);
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (std::size_t a = n; a < network.arcs.size(); ++a) {
      const Network::Arc& arc = network.arcs[a];
      if (arc.tail == Network::kSource) {
        earliest_[Activity(arc.head)] = arc.length;
      } else if (arc.head == Network::kSink) {
        tail_ = std::max(tail_, arc.length);
      } else {
        arcs_[next[Activity(arc.head)]++] = {Activity(arc.tail), arc.length};
      }
    }
    end_.resize(n);
  }

  std::int64_t operator()(const std::vector<std::int64_t>& lengths) {
    std::int64_t last = 0;
    for (const int i : network_.topological_order) {
      std::int64_t start = earliest_[i];
      for (int p = first_[i]; p < first_[i + 1]; ++p) {
        start = std::max(start, end_[arcs_[p].first] + arcs_[p].second);
      }
      end_[i] = start + lengths[i];
      last = std::max(last, end_[i]);
    }
    return last + tail_;
  }

 private:
  static int Activity(int node) { return (node - 2) / 2; }

  const Network& network_;
  std::vector<int> first_;
  std::vector<std::pair<int, std::int64_t>> arcs_;  // By head: tail, length.
  std::vector<std::int64_t> earliest_;
  std::int64_t tail_ = 0;
  std::vector<std::int64_t> end_;
};

}  // namespace

std::vector<int> ImproveGroups(const Network& network, const SearchSpace& space,
                               std::int64_t deadline, std::int64_t price_of_time,
                               std::vector<int> knobs, std::int64_t work_limit) {
  const int groups = static_cast<int>(space.groups.size());
  const auto option = [&](int activity, int knob) -> const GridOption& {
    return space.options[network.curve_of[activity]][knob];
  };
  // Knobs of each group from fast to slow, and what they cost. Doubles are
  // enough to compare with; the sums are exact before they are rounded.
  std::vector<std::vector<int>> order(groups);
  std::vector<std::vector<double>> cost(groups);
  std::vector<int> place(groups);
  for (int g = 0; g < groups; ++g) {
    std::vector<std::pair<Int128, int>> by_length;
    for (const int knob : space.knobs[g]) {
      Int128 length = 0;
      for (const int i : space.groups[g]) length += option(i, knob).length;
      by_length.emplace_back(length, knob);
    }
    std::stable_sort(by_length.begin(), by_length.end());
    for (const auto& [length, knob] : by_length) {
      Int128 sum = 0;
      for (const int i : space.groups[g]) sum += option(i, knob).cost;
      if (knob == knobs[g]) place[g] = static_cast<int>(order[g].size());
      order[g].push_back(knob);
      cost[g].push_back(static_cast<double>(sum));
    }
  }

  PathLength path_length(network);
  std::vector<std::int64_t> lengths(network.num_activities);
  const auto set_group = [&](int g, int to) {
    place[g] = to;
    for (const int i : space.groups[g]) lengths[i] = option(i, order[g][to]).length;
  };
  for (int g = 0; g < groups; ++g) set_group(g, place[g]);
  const auto excess_cost = [&](std::int64_t length) {
    return length <= deadline ? 0.0
                              : kExcessPrice * static_cast<double>(price_of_time) *
                                    static_cast<double>(length - deadline);
  };
  const auto total_cost = [&]() {
    double total = 0;
    for (int g = 0; g < groups; ++g) total += cost[g][place[g]];
    return total;
  };

  std::mt19937 random;  // Its sequence is fixed by the standard.
  std::int64_t choices = 0;
  for (const std::vector<int>& of_group : order)
    choices += static_cast<std::int64_t>(of_group.size());
  const std::int64_t steps =
      std::min(work_limit / (2 * network.num_activities + groups), kMostStepsPerChoice * choices);
  std::vector<int> best = place;
  double best_cost = total_cost();
  double mean_change = 0;
  for (int g = 0; g < groups; ++g) {
    mean_change += (cost[g].front() - cost[g].back()) / static_cast<double>(cost[g].size());
  }
  mean_change = std::max(0.0, mean_change / groups);
  for (const double first_threshold : kFirstThresholds) {
    for (int g = 0; g < groups; ++g) set_group(g, best[g]);
    double current = best_cost;
    const auto cycle_steps = steps / static_cast<std::int64_t>(kFirstThresholds.size());
    for (std::int64_t step = 0; step < cycle_steps; ++step) {
      const int g = static_cast<int>(random() % static_cast<std::uint32_t>(groups));
      const int reach = 1 + static_cast<int>(random() % kLongestStep);
      const int from = place[g];
      const int to = random() % 2 == 0 ? from - reach : from + reach;
      if (to < 0 || to >= static_cast<int>(order[g].size())) continue;
      set_group(g, to);
      const std::int64_t length = path_length(lengths);
      const double energy = total_cost();
      const double candidate = energy + excess_cost(length);
      const double threshold = first_threshold * mean_change *
                               static_cast<double>(cycle_steps - step) /
                               static_cast<double>(cycle_steps);
      if (candidate >= current + threshold) {
        set_group(g, from);
        continue;
      }
      current = candidate;
      if (length <= deadline && energy < best_cost) {
        best_cost = energy;
        best = place;
      }
    }
  }
  for (int g = 0; g < groups; ++g) knobs[g] = order[g][best[g]];
  return knobs;
}

}  // namespace perseus::plan
