// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/time_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace perseus::robust {
namespace {

// The computations by their starts at the baseline's clocks.
std::vector<int> ByStart(const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> seconds(dag.size());
  for (int i = 0; i < dag.size(); ++i) seconds[i] = pipeline.TableOf(i).baseline.time_seconds;
  const Timing timing = Replay(dag, seconds);
  std::vector<int> order(dag.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return timing.start_seconds[a] < timing.start_seconds[b]; });
  return order;
}

bool BeginsByItself(const PipelineDag& dag, int i) {
  return dag.first_precedence[i] == dag.first_precedence[i + 1] || dag.start_delay_seconds[i] > 0;
}

// [place]: how many arcs lead across the cut behind it, counted without listing them.
std::vector<std::int64_t> CountAcrossCuts(const PipelineDag& dag, const std::vector<int>& order) {
  const int size = dag.size();
  std::vector<int> place(size);
  for (int k = 0; k < size; ++k) place[order[k]] = k;
  std::vector<std::int64_t> across(size, 0);  // What begins at a place, less what ends there.
  std::vector<char> is_followed(size, 0);
  for (const Precedence& precedence : dag.precedences) {
    ++across[place[precedence.from]];
    --across[place[precedence.to]];
    is_followed[precedence.from] = 1;
  }
  std::int64_t sum = 0;
  for (int i = 0; i < size; ++i) {
    if (BeginsByItself(dag, i)) {
      ++sum;
      --across[place[i]];
    }
    if (is_followed[i] == 0) ++across[place[i]];
  }
  for (std::int64_t& count : across) count = sum += count;
  return across;
}

}  // namespace

std::int64_t TimeOrder::MostAcrossOneCut(const CostedPipeline& pipeline) {
  const std::vector<std::int64_t> across = CountAcrossCuts(pipeline.dag, ByStart(pipeline));
  return across.empty() ? 0 : *std::max_element(across.begin(), across.end());
}

TimeOrder::TimeOrder(const CostedPipeline& pipeline, std::int64_t most_cut_arcs)
    : order_(ByStart(pipeline)) {
  const PipelineDag& dag = pipeline.dag;
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
  const std::vector<std::int64_t> across = CountAcrossCuts(dag, order_);
  const auto listed = [&] {
    std::int64_t sum = 0;
    for (int place = 0; place < size(); place = EndOfCutBehind(place)) {
      sum += across[EndOfCutBehind(place) - 1];
    }
    return sum;
  };
  while (listed() > most_arcs && stride_ < size()) stride_ = std::min(2 * stride_, size());
  cuts_.reserve(listed());
  std::vector<CutArc> crossing;
  for (int place = 0; place < size(); ++place) {
    const int i = order_[place];
    if (BeginsByItself(dag, i)) crossing.push_back({-1, place, dag.start_delay_seconds[i]});
  }
  for (int place = 0; place < size(); ++place) {
    for (const Arc& arc : After(place)) crossing.push_back({place, arc.place, arc.delay_seconds});
    if (After(place).empty()) crossing.push_back({place, size(), 0});
    if (place + 1 != EndOfCutBehind(place)) continue;
    std::erase_if(crossing, [&](const CutArc& arc) { return arc.to <= place; });
    first_cut_.push_back(static_cast<std::int64_t>(cuts_.size()));
    cuts_.insert(cuts_.end(), crossing.begin(), crossing.end());
  }
  first_cut_.push_back(static_cast<std::int64_t>(cuts_.size()));
}

}  // namespace perseus::robust
