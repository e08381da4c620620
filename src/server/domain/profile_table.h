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
#include "server/store/facts.h"

namespace perseus::server {

using wire::ProfileKey;

// The cost of all ranks' sweeps together.
struct SweepSummary {
  std::int64_t ranks = 0;  // Ranks that reported the cost of their sweep.
  store::SweepCost cost;   // Iterations and seconds: maximum over the ranks. Joules: their sum.
  double counter_period_seconds = 0;  // Maximum over the ranks; 0: not reported.
};

struct BlockingPower {
  double watts = 0;
  double std_watts = 0;  // Standard error, including the spread among ranks; 0: not known.
};

// The measurements of all ranks of a job, by stage, type of computation and clock. The value of a
// cell is the median over the ranks, so that one disturbed rank changes nothing. A new report of a
// rank replaces its old one. Reports of throttled GPUs count only if there are no others. Not
// thread-safe.
class ProfileTable {
 public:
  // `pp_rank`: the pipeline rank of the rank that reports.
  void Add(const store::Measurements& measured, int pp_rank);

  // Whether there is nothing more to wait for: all ranks have ended their sweeps, or at least one
  // rank of each pipeline rank has and the last report is kProfileGraceSeconds ago.
  bool IsComplete(const Shape& shape, double seconds_since_last) const;

  bool empty() const { return cells_.empty(); }
  std::size_t ranks_done() const { return done_.size(); }
  std::size_t rows() const { return cells_.size(); }

  // The cells that one rank has reported, in the order of its reports.
  std::vector<ProfileKey> RowsOf(int rank) const;
  bool IsDone(int rank) const { return done_.contains(rank); }
  // Whether all that a rank has reported, done with its sweep, is of one clock (or of none).
  bool HasOneClock(int rank) const;

  // The profile as CSV, with rows `blocking` where ranks know waiting by clock. Energies are of one
  // GPU. The standard deviations combine the standard errors of the reports with the spread among
  // ranks.
  std::string Csv() const;
  // Blocking power per pipeline rank. A pipeline rank without measurements gets the median of the
  // others. Empty if there are no measurements at all.
  std::vector<BlockingPower> Blocking(int pipeline_parallel) const;
  std::vector<double> BlockingPowerWatts(int pipeline_parallel) const;

  // By pipeline rank and clock. Where most ranks of a pipeline rank do not know it by clock, that
  // of the others counts for it. Empty: no rank knows it.
  std::vector<std::map<int, BlockingPower>> Waiting(int pipeline_parallel) const;

  // Cells that have only reports of throttled GPUs.
  std::vector<ProfileKey> Throttled() const;
  std::optional<SweepSummary> Sweep() const;
  // Notes that ranks sent with measurements, each with its ranks. Keeps the first kMostNotes
  // different notes.
  const std::map<std::string, std::set<int>>& notes() const { return notes_; }
  static constexpr std::size_t kMostNotes = 100;

 private:
  struct Report {
    int rank = 0;
    double time_seconds = 0;
    double energy_joules = 0;
    float time_std_seconds = 0;
    float energy_std_joules = 0;
    float temperature_celsius = 0;  // NaN: not reported.
    float work = 0;
    float seconds_per_work = 0;  // NaN: not reported.
    float joules_per_work = 0;
    std::vector<float> time_sources;  // See OptionErrors; empty: not reported.
    std::vector<float> power_sources;
    bool throttled = false;
  };
  using Cell = std::vector<Report>;  // At most one report per rank, sorted by rank.

  std::string ErrorSourcesOf(const std::vector<const Report*>& reports) const;
  std::string WaitingRows(std::size_t more_columns) const;
  double BlockingErrorOf(int rank) const;  // Relative.
  static bool IsThrottled(const Cell& cell);
  static std::vector<const Report*> Counted(const Cell& cell);
  bool IsOfUse(const ProfileKey& key) const;

  std::map<ProfileKey, Cell> cells_;
  std::map<int, std::vector<ProfileKey>> rows_of_rank_;
  std::map<int, std::map<int, BlockingPower>> blocking_power_;  // By pipeline rank and rank.
  std::map<int, std::map<int, std::vector<store::MeasuredWaiting>>> waiting_;  // Likewise.
  std::map<int, int> pp_rank_of_stage_;
  std::map<int, store::SweepCost> sweeps_;
  double counter_period_seconds_ = 0;
  std::map<std::string, std::set<int>> notes_;
  std::set<int> done_;  // Ranks.
  std::set<int> pp_ranks_done_;
};

// "stage 0 forward at 1410 MHz"
std::string ProfileKeyText(const ProfileKey& key);

// How long the server waits for the last ranks to end their sweeps.
inline constexpr double kProfileGraceSeconds = 30;

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PROFILE_TABLE_H_
