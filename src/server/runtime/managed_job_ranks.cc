// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What is shown of a job's ranks, one by one.

#include <map>
#include <utility>
#include <vector>

#include "server/runtime/managed_job.h"

namespace perseus::server {

std::vector<RankNow> ManagedJob::RanksNow() const {
  const Strand::Turn turn(strand_);
  const std::map<int, double> lateness = watch_.Lateness();
  std::vector<RankNow> ranks;
  ranks.reserve(life_.ranks.size());
  for (const auto& [number, record] : life_.ranks) {
    RankNow& rank = ranks.emplace_back(RankNow{.record = record, .client = {}, .lateness = {}});
    if (const auto found = clients_.find(number); found != clients_.end()) {
      rank.client = found->second;
    }
    if (const auto found = lateness.find(number); found != lateness.end()) {
      rank.lateness = found->second;
    }
  }
  return ranks;
}

void ManagedJob::VisitRanks(const RankVisitor& visit) const {
  const Strand::Turn turn(strand_);
  for (const auto& [number, record] : life_.ranks) {
    const auto found = clients_.find(number);
    visit(record, found == clients_.end() ? nullptr : &found->second);
  }
}

}  // namespace perseus::server
