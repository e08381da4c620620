// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/gap_watch.h"

#include <cstddef>

namespace perseus::server {
namespace {

constexpr std::size_t kMostWaiting = 8;
// Ranks end an iteration together and report it seconds later. What is older may be of the same
// iteration before training began again.
constexpr double kPatienceSeconds = 120;

bool FitsRank(const PipelineDag& dag, const RankRows& told) {
  return told.rank >= 0 && told.rank < dag.num_ranks && !told.rows.empty() &&
         told.rows.size() == dag.rank_order[static_cast<std::size_t>(told.rank)].size();
}

}  // namespace

std::optional<WholeIteration> GapWatch::Take(const PipelineDag& dag, RankRows told) {
  if (!FitsRank(dag, told)) return std::nullopt;
  const Key key = {told.plan_version, told.iteration};
  const auto [found, is_new] = waiting_.try_emplace(key);
  if (is_new) order_.push_back(key);
  Waiting& waiting = found->second;
  if (is_new || told.heard_seconds - waiting.since_seconds > kPatienceSeconds) {
    waiting = Waiting{.since_seconds = told.heard_seconds};
  }
  waiting.ranks[told.rank] = std::move(told.rows);
  waiting.as_planned = waiting.as_planned && told.as_planned;
  std::optional<WholeIteration> whole;
  if (static_cast<int>(waiting.ranks.size()) == dag.num_ranks) {
    whole = WholeIteration{.as_planned = waiting.as_planned};
    whole->ranks.reserve(waiting.ranks.size());
    for (auto& [number, spans] : waiting.ranks) whole->ranks.push_back(std::move(spans));
    estimate_.Add(dag, whole->ranks);
    waiting_.erase(found);
    std::erase(order_, key);
  }
  while (order_.size() > kMostWaiting) {
    waiting_.erase(order_.front());
    order_.pop_front();
  }
  return whole;
}

}  // namespace perseus::server
