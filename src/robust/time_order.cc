// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/time_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace perseus::robust {

TimeOrder::TimeOrder(const CostedPipeline& pipeline, std::int64_t most_cut_arcs) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> seconds(dag.size());
  for (int i = 0; i < dag.size(); ++i) seconds[i] = pipeline.TableOf(i).baseline.time_seconds;
  const Timing timing = Replay(dag, seconds);
  order_.resize(dag.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return timing.start_seconds[a] < timing.start_seconds[b]; });
  place_.resize(dag.size());
  for (int place = 0; place < dag.size(); ++place) place_[order_[place]] = place;
  first_before_.assign(dag.size() + 1, 0);
  first_after_.assign(dag.size() + 1, 0);
  for (const Precedence& precedence : dag.precedences) {
    ++first_before_[place_[precedence.to] + 1];
    ++first_after_[place_[precedence.from] + 1];
  }
  std::partial_sum(first_before_.begin(), first_before_.end(), first_before_.begin());
  std::partial_sum(first_after_.begin(), first_after_.end(), first_after_.begin());
  before_.resize(dag.precedences.size());
  after_.resize(dag.precedences.size());
  std::vector<int> to_next = first_before_;
  std::vector<int> from_next = first_after_;
  for (const Precedence& precedence : dag.precedences) {
    const int from = place_[precedence.from];
    const int to = place_[precedence.to];
    before_[to_next[to]++] = {from, precedence.delay_seconds};
    after_[from_next[from]++] = {to, precedence.delay_seconds};
  }
  MakeCuts(dag, most_cut_arcs);
}

void TimeOrder::MakeCuts(const PipelineDag& dag, std::int64_t most_arcs) {
  const std::int64_t about = static_cast<std::int64_t>(size()) * 3 * (dag.num_ranks + 1);
  stride_ = static_cast<int>(about / most_arcs) + 1;
  std::vector<CutArc> crossing;
  for (int place = 0; place < size(); ++place) {
    const double delay = dag.start_delay_seconds[order_[place]];
    if (Before(place).empty() || delay > 0) crossing.push_back({-1, place, delay});
  }
  for (int place = 0; place < size(); ++place) {
    std::erase_if(crossing, [&](const CutArc& arc) { return arc.to == place; });
    for (const Arc& arc : After(place)) crossing.push_back({place, arc.place, arc.delay_seconds});
    if (After(place).empty()) crossing.push_back({place, size(), 0});
    if (place + 1 < size() && (place + 1) % stride_ != 0) continue;
    first_cut_.push_back(static_cast<int>(cuts_.size()));
    cuts_.insert(cuts_.end(), crossing.begin(), crossing.end());
  }
  first_cut_.push_back(static_cast<int>(cuts_.size()));
}

}  // namespace perseus::robust
