// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/dwell_patterns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace perseus::plan {
template <typename Visit>
void DwellPatterns::VisitStretches(const std::vector<int>& order, const Allowed& allowed,
                                   const Prices& prices, const Visit& visit) {
  const int size = static_cast<int>(order.size());
  std::vector<std::pair<int, double>> alive;  // Knobs that all members so far may take.
  for (int begin = 0; begin < size; ++begin) {
    alive.clear();
    for (int knob = 0; knob < num_knobs(); ++knob) {
      if (allowed[order[begin]][knob] != 0) alive.emplace_back(knob, 0.0);
    }
    double fastest_seconds = 0;
    for (int end = begin; end < size && !alive.empty(); ++end) {
      const int i = order[end];
      std::size_t kept = 0;
      for (const auto& [knob, joules] : alive) {
        if (allowed[i][knob] == 0) continue;
        alive[kept++] = {knob, joules + PricedJoules(prices, i, knob)};
      }
      AddWork(2 * static_cast<std::int64_t>(alive.size()));
      alive.resize(kept);
      fastest_seconds += pipeline().TableOf(i).options.front().time_seconds;
      if (fastest_seconds < least_seconds_ && end - begin + 1 < size) continue;
      for (const auto& [knob, joules] : alive) visit(Stretch{begin, end + 1, knob, joules});
    }
  }
}

double DwellPatterns::Cheapest(const Allowed& allowed, const Prices& prices,
                               std::vector<int>* knobs) {
  knobs->assign(pipeline().table_of.size(), -1);
  double total = 0;
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    std::vector<double> least(order.size() + 1, kNoWay);
    std::vector<Stretch> last(order.size() + 1);
    least[0] = 0;
    // Stretches come in order of their begin, so that least[begin] is final.
    VisitStretches(order, allowed, prices, [&](const Stretch& stretch) {
      const double joules = least[stretch.begin] + stretch.joules;
      if (!(joules < least[stretch.end])) return;
      least[stretch.end] = joules;
      last[stretch.end] = stretch;
    });
    total += least.back();
    if (least.back() == kNoWay) return kNoWay;
    for (std::size_t end = order.size(); end > 0; end = last[end].begin) {
      for (std::size_t k = last[end].begin; k < end; ++k) (*knobs)[order[k]] = last[end].knob;
    }
  }
  return total;
}

void DwellPatterns::Forbid(const Prices& prices, double room, Allowed* allowed) {
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    std::vector<Stretch> stretches;
    VisitStretches(order, *allowed, prices,
                   [&](const Stretch& stretch) { stretches.push_back(stretch); });
    std::vector<double> before(order.size() + 1, kNoWay);
    std::vector<double> after(order.size() + 1, kNoWay);
    before.front() = 0;
    after.back() = 0;
    for (const Stretch& s : stretches) {
      before[s.end] = std::min(before[s.end], before[s.begin] + s.joules);
    }
    for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
      after[s->begin] = std::min(after[s->begin], s->joules + after[s->end]);
    }
    if (before.back() == kNoWay) return;
    Allowed kept(order.size(), std::vector<std::uint8_t>(num_knobs(), 0));
    for (const Stretch& s : stretches) {
      if (before[s.begin] + s.joules + after[s.end] - before.back() > room) continue;
      for (int k = s.begin; k < s.end; ++k) kept[k][s.knob] = 1;
      AddWork(s.end - s.begin);
    }
    for (std::size_t k = 0; k < order.size(); ++k) (*allowed)[order[k]] = std::move(kept[k]);
  }
}

}  // namespace perseus::plan
