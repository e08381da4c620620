// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PROFILE_TABLE_H_
#define PERSEUS_SERVER_PROFILE_TABLE_H_

#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "server/shape.h"
#include "store/facts.h"

namespace perseus::server {

// What the ranks of a job measured, in one table per stage and type, whichever
// rank measured it. The median of all reports counts: one rank that was
// disturbed moves nothing. Not thread-safe.
class ProfileTable {
 public:
  // `pp_rank` is that of the reporting rank.
  void Add(const store::Measurements& measured, int pp_rank);

  // Whether nothing more is to be waited for: every rank has ended its sweep, or
  // one of each pipeline rank has and `seconds_since_last` is long.
  bool IsComplete(const Shape& shape, double seconds_since_last) const;

  bool empty() const { return cells_.empty(); }
  std::size_t ranks_done() const { return done_.size(); }
  std::size_t rows() const { return cells_.size(); }

  // The profile as CSV. Energies are of one GPU.
  std::string Csv() const;
  // Per pipeline rank; those that nobody measured get the median of the others.
  // Empty where nobody did.
  std::vector<double> BlockingPowerWatts(int pipeline_parallel) const;

 private:
  struct Key {
    int stage = 0;
    ComputationType type = ComputationType::kForward;
    int clock_mhz = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Cell {
    std::vector<double> times;
    std::vector<double> energies;
  };

  std::map<Key, Cell> cells_;
  std::map<int, std::vector<double>> blocking_power_;  // By pipeline rank.
  std::set<int> done_;                                 // Ranks.
  std::set<int> pp_ranks_done_;
};

// How long the last ranks may take to end their sweeps after the others.
inline constexpr double kProfileGraceSeconds = 30;

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PROFILE_TABLE_H_
