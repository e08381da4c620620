// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A shortest path through the knobs of a rank, for each knob that its first computation may have:
// the last one pays for a change where it has another.

#include "plan/grouped/change_patterns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace perseus::plan {

ChangePatterns::Rank ChangePatterns::RankOf(const std::vector<int>& order, const Allowed& allowed,
                                            const Prices& prices) {
  Rank rank;
  for (int knob = 0; knob < num_knobs(); ++knob) {
    if (std::any_of(order.begin(), order.end(), [&](int i) { return allowed[i][knob] != 0; })) {
      rank.knobs.push_back(knob);
    }
  }
  for (const int i : order) {
    std::vector<double>& joules = rank.joules.emplace_back();
    for (const int knob : rank.knobs) {
      joules.push_back(allowed[i][knob] != 0 ? PricedJoules(prices, i, knob) : kNoWay);
    }
  }
  AddWork(static_cast<std::int64_t>(order.size() * rank.knobs.size()));
  return rank;
}

void ChangePatterns::Forward(const Rank& rank, int first, double change_joules,
                             std::vector<std::vector<double>>* least) {
  const std::size_t size = rank.joules.size();
  const std::size_t places = rank.knobs.size();
  least->resize(size);
  least->front().assign(places, kNoWay);
  least->front()[first] = rank.joules.front()[first];
  for (std::size_t p = 1; p < size; ++p) {
    const std::vector<double>& before = (*least)[p - 1];
    const double changed = *std::min_element(before.begin(), before.end()) + change_joules;
    std::vector<double>& now = (*least)[p];
    now.resize(places);
    for (std::size_t k = 0; k < places; ++k) {
      now[k] = std::min(before[k], changed) + rank.joules[p][k];
    }
  }
  AddWork(static_cast<std::int64_t>(size * places));
}

double ChangePatterns::Cheapest(const Allowed& allowed, const Prices& prices,
                                std::vector<int>* knobs) {
  knobs->assign(pipeline().table_of.size(), -1);
  double total = 0;
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    const Rank rank = RankOf(order, allowed, prices);
    const int places = static_cast<int>(rank.knobs.size());
    std::vector<std::vector<double>> least;
    double cheapest = kNoWay;
    int best_first = -1;
    int best_last = -1;
    for (int first = 0; first < places; ++first) {
      if (rank.joules.front()[first] == kNoWay) continue;
      Forward(rank, first, prices.change_joules, &least);
      for (int last = 0; last < places; ++last) {
        const double joules = least.back()[last] + (last == first ? 0 : prices.change_joules);
        if (!(joules < cheapest)) continue;
        cheapest = joules;
        best_first = first;
        best_last = last;
      }
    }
    if (best_first < 0) return kNoWay;
    total += cheapest;
    Forward(rank, best_first, prices.change_joules, &least);
    int at = best_last;
    for (std::size_t p = order.size(); p-- > 0;) {
      (*knobs)[order[p]] = rank.knobs[at];
      if (p == 0) break;
      const auto cheaper = std::min_element(least[p - 1].begin(), least[p - 1].end());
      if (*cheaper + prices.change_joules < least[p - 1][at]) {
        at = static_cast<int>(cheaper - least[p - 1].begin());
      }
    }
  }
  return total;
}

void ChangePatterns::Forbid(const Prices& prices, double room, Allowed* allowed) {
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    const Rank rank = RankOf(order, *allowed, prices);
    const int places = static_cast<int>(rank.knobs.size());
    // [position][place] Of the ways that pass there.
    std::vector<std::vector<double>> through(order.size(), std::vector<double>(places, kNoWay));
    std::vector<std::vector<double>> least;
    for (int first = 0; first < places; ++first) {
      if (rank.joules.front()[first] == kNoWay) continue;
      Forward(rank, first, prices.change_joules, &least);
      std::vector<double> after(places, prices.change_joules);
      after[first] = 0;
      for (std::size_t p = order.size(); p-- > 0;) {
        double changed = kNoWay;
        for (int k = 0; k < places; ++k) {
          through[p][k] = std::min(through[p][k], least[p][k] + after[k]);
          after[k] += rank.joules[p][k];
          changed = std::min(changed, after[k] + prices.change_joules);
        }
        for (double& joules : after) joules = std::min(joules, changed);
      }
      AddWork(static_cast<std::int64_t>(3 * order.size()) * places);
    }
    const double cheapest = *std::min_element(through.front().begin(), through.front().end());
    if (cheapest == kNoWay) return;
    for (std::size_t p = 0; p < order.size(); ++p) {
      for (int k = 0; k < places; ++k) {
        if (through[p][k] - cheapest > room) (*allowed)[order[p]][rank.knobs[k]] = 0;
      }
    }
  }
}

}  // namespace perseus::plan
