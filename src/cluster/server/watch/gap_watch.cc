// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/watch/gap_watch.h"

#include <cstddef>

namespace perseus::server {

void GapWatch::Take(const PipelineDag& dag, int rank, std::int64_t iteration,
                    std::int64_t plan_version, std::vector<RowSpan> rows) {
  constexpr std::size_t kMostWaiting = 8;
  if (rank < 0 || rank >= dag.num_ranks || rows.empty()) return;
  const Key key = {plan_version, iteration};
  const auto [found, is_new] = waiting_.try_emplace(key);
  if (is_new) order_.push_back(key);
  std::map<int, std::vector<RowSpan>>& ranks = found->second;
  ranks[rank] = std::move(rows);
  if (static_cast<int>(ranks.size()) == dag.num_ranks) {
    std::vector<std::vector<RowSpan>> all;
    all.reserve(ranks.size());
    for (auto& [number, spans] : ranks) all.push_back(std::move(spans));
    estimate_.Add(dag, all);
    waiting_.erase(key);
    std::erase(order_, key);
  }
  while (order_.size() > kMostWaiting) {
    waiting_.erase(order_.front());
    order_.pop_front();
  }
}

}  // namespace perseus::server
