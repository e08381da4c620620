// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/underway.h"

#include <variant>

#include "server/domain/job_life.h"

namespace perseus::server {

void Underway::Begin(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    if (const auto* const record = std::get_if<store::RankRecord>(&fact)) {
      Rank& rank = ranks_[record->rank];
      rank.record = *record;
      ++rank.requests;
      positions_[PositionOf(*record)] = record->rank;
    } else if (const auto* const reported = std::get_if<store::Measurements>(&fact)) {
      Measured& measured = measured_[reported->rank];
      measured.rows += reported->rows.size();
      ++measured.requests;
    }
  }
}

void Underway::End(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    if (const auto* const record = std::get_if<store::RankRecord>(&fact)) {
      const auto rank = ranks_.find(record->rank);
      if (rank == ranks_.end() || --rank->second.requests > 0) continue;
      positions_.erase(PositionOf(rank->second.record));
      ranks_.erase(rank);
    } else if (const auto* const reported = std::get_if<store::Measurements>(&fact)) {
      const auto measured = measured_.find(reported->rank);
      if (measured == measured_.end()) continue;
      measured->second.rows -= reported->rows.size();
      if (--measured->second.requests == 0) measured_.erase(measured);
    }
  }
}

const store::RankRecord* Underway::RankOf(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second.record;
}

int Underway::RankAt(const std::array<int, 3>& position) const {
  const auto found = positions_.find(position);
  return found == positions_.end() ? -1 : found->second;
}

std::size_t Underway::RowsOf(int rank) const {
  const auto found = measured_.find(rank);
  return found == measured_.end() ? 0 : found->second.rows;
}

}  // namespace perseus::server
