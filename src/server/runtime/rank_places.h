// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_RANK_PLACES_H_
#define PERSEUS_SERVER_RUNTIME_RANK_PLACES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/store/facts.h"

namespace perseus::server {

// Where a rank is in its job.
struct RankPlace {
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
};

// The places of a job's ranks, for those who read plans. A registered rank never moves, so one
// number says all about it. Readers take no lock and wait for nobody.
class RankPlaces {
 public:
  explicit RankPlaces(std::int64_t world_size) : places_(static_cast<std::size_t>(world_size)) {}

  // Nullopt: this server knows no such rank.
  std::optional<RankPlace> Find(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= places_.size()) return std::nullopt;
    const std::uint64_t place = places_[static_cast<std::size_t>(rank)];
    if (place == 0) return std::nullopt;
    return RankPlace{rank, static_cast<int>(place >> 32U) - 1, static_cast<int>(place & kLow)};
  }

  // One writer at a time.
  void Set(const store::RankRecord& rank) {
    if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) >= places_.size()) return;
    places_[static_cast<std::size_t>(rank.rank)] =
        (static_cast<std::uint64_t>(rank.dp_rank + 1) << 32U) |
        static_cast<std::uint32_t>(rank.pp_rank);
  }
  // Forgets the others.
  void SetAll(const std::map<int, store::RankRecord>& ranks) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!ranks.contains(static_cast<int>(i))) places_[i] = 0;
    }
    for (const auto& [number, rank] : ranks) Set(rank);
  }

 private:
  static constexpr std::uint64_t kLow = 0xffffffff;

  // By rank: 2^32 (dp_rank + 1) + pp_rank. 0: not known.
  std::vector<std::atomic<std::uint64_t>> places_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_RANK_PLACES_H_
