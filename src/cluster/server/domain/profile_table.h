// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PROFILE_TABLE_H_
#define PERSEUS_SERVER_DOMAIN_PROFILE_TABLE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "server/base/shape.h"
#include "store/facts.h"

namespace perseus::server {

// One kind of computation at one clock.
struct ProfileKey {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;
  friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
};

// What ranks said of their sweeps, together.
struct SweepSummary {
  std::int64_t ranks = 0;             // That said what theirs cost.
  store::SweepCost cost;              // The longest rank's iterations and seconds; joules of all.
  double counter_period_seconds = 0;  // The longest; 0: not said.
};

struct BlockingPower {
  double watts = 0;
  double std_watts = 0;  // Standard error with the spread among ranks; 0: not known.
};

// What the ranks of a job measured, in one table per stage and type, whichever
// rank measured it. The median of all ranks counts: one that was disturbed moves
// nothing. What a rank says again replaces what it said before. Where there are others, reports of
// GPUs that slowed themselves down do not count. Not thread-safe.
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

  // What one rank has reported, in its order.
  std::vector<ProfileKey> RowsOf(int rank) const;
  bool IsDone(int rank) const { return done_.contains(rank); }

  // The profile as CSV. Energies are of one GPU. The standard deviations are those of
  // the values: standard errors of the reports, and what ranks differ by.
  std::string Csv() const;
  // Per pipeline rank; those that nobody measured get the median of the others.
  // Empty where nobody did.
  std::vector<BlockingPower> Blocking(int pipeline_parallel) const;
  std::vector<double> BlockingPowerWatts(int pipeline_parallel) const;

  // Cells of which all reports are of GPUs that slowed themselves down.
  std::vector<ProfileKey> Throttled() const;
  std::optional<SweepSummary> Sweep() const;
  // Ranks by what they noted; of the first kMostNotes different ones.
  const std::map<std::string, std::set<int>>& notes() const { return notes_; }
  static constexpr std::size_t kMostNotes = 100;

 private:
  struct Report {
    int rank = 0;
    double time_seconds = 0;
    double energy_joules = 0;
    float time_std_seconds = 0;
    float energy_std_joules = 0;
    float temperature_celsius = 0;  // Not a number: not said.
    float work = 0;
    float seconds_per_work = 0;  // Likewise.
    float joules_per_work = 0;
    bool throttled = false;
  };
  using Cell = std::vector<Report>;  // By rank, each once.

  static bool IsThrottled(const Cell& cell);
  static std::vector<const Report*> Counted(const Cell& cell);

  std::map<ProfileKey, Cell> cells_;
  std::map<int, std::vector<ProfileKey>> rows_of_rank_;
  std::map<int, std::map<int, BlockingPower>> blocking_power_;  // By pipeline rank and rank.
  std::map<int, store::SweepCost> sweeps_;
  double counter_period_seconds_ = 0;
  std::map<std::string, std::set<int>> notes_;
  std::set<int> done_;  // Ranks.
  std::set<int> pp_ranks_done_;
};

// "stage 0 forward at 1410 MHz"
std::string ProfileKeyText(const ProfileKey& key);

// How long the last ranks may take to end their sweeps after the others.
inline constexpr double kProfileGraceSeconds = 30;

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PROFILE_TABLE_H_
