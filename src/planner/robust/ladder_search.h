// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_LADDER_SEARCH_H_
#define PERSEUS_ROBUST_LADDER_SEARCH_H_

#include <functional>
#include <optional>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"
#include "robust/bounds.h"
#include "robust/lane_replay.h"
#include "robust/samples.h"
#include "robust/trials.h"
#include "robust/window_replay.h"

namespace perseus::robust {

// The noises at the ends of the conditions' ranges. The lanes of a search have a group for each,
// and the group that is latest counts: as a multiple of its baseline, and as late as trials find
// it.
class NoiseGroups {
 public:
  explicit NoiseGroups(const Conditions& conditions);

  // [group]; the most of all first. One where no noise is a range.
  const std::vector<TimeNoise>& noises() const { return noises_; }
  bool many() const { return noises_.size() > 1; }
  bool noisy() const;

  // The replay is at maximum clocks, and all scales are 1.
  void SetBaseline(const LaneReplay& replay, const Samples& samples, double end_delay);
  // Mean of all lanes at maximum clocks, whatever their groups.
  double mean_baseline_seconds() const { return mean_baseline_seconds_; }

  // `bias`: [group], by how much trials find it slower than the lanes do, in per cent.
  void SetScales(const std::vector<double>& bias, Samples* samples) const;
  // From how much slower a choice is at each corner of the trials, with the replay at that choice.
  void LearnBias(const Trials& trials, const std::vector<double>& slower_at,
                 const LaneReplay& replay, const Samples& samples, std::vector<double>* bias) const;

 private:
  std::vector<double> SecondsOf(const LaneReplay& replay, const Samples& samples) const;

  std::vector<TimeNoise> noises_;
  std::vector<double> baselines_;  // [group]: mean seconds.
  double baseline_seconds_ = 0;    // Of the group that is latest.
  double mean_baseline_seconds_ = 0;
  double end_delay_ = 0;
};

// A choice that holds in the trials.
struct Candidate {
  std::vector<CostOption> options;
  int changes = 0;
  double saving_percent = 0;  // Of the trials, less the price of changes.
  double error_percent = 0;   // Its standard error.
};

// More changes that save no more than this, which is rounding, are not worth it.
inline constexpr double kEqualPercent = 1e-9;

// Figures of a choice by the trials.
struct Verdict {
  double late_percent = 0;  // By how much it is slower than accepted, with the margin.
  int changes = 0;
  double saving_percent = 0;           // Less the price of changes.
  std::vector<double> slower_at = {};  // As in Trials::Judged.
};

// How many changes of clock the search allows, one after the other: none, 2, 4, 6, 8, 10, 20,
// 30, 50, 100, ..., and as many as there are computations.
std::vector<int> LadderLevels(int computations);

// Searches with few changes first, then with more, each time from the best found
// so far; and all of that again with more work, as far as the effort goes. What is
// tried does not depend on where effort or the limit on changes cut it off, and
// the best is kept: so more of either is never worse.
class LadderSearch {
 public:
  // All must outlive it. `slower_percent`: accepted beyond the baseline's mean.
  LadderSearch(const Planner& planner, const RobustPlanSpec& spec, const Trials& trials,
               double slower_percent, double price_of_time);

  // Judges a choice in the trials; keeps it where it holds.
  Verdict Judge(const std::vector<CostOption>& options);

  // `progress` gets the share of work done and whether something better was found;
  // false ends the search.
  void Run(const std::function<bool(double share, bool better)>& progress);

  const Candidate* best() const { return best_ < 0 ? nullptr : &held_[best_]; }
  // Of those that the trials do not tell from the best, the one with the fewest changes.
  // Precondition: there is a best.
  const Candidate& Taken() const;
  // By ascending changes and savings.
  std::vector<ChangePricePoint> PriceCurve() const;

 private:
  struct Level {
    int most_changes = 0;
    std::vector<int> knobs = {};  // The last choice that it made.
    double correction = 0;        // Of the accepted time, in per cent.
    // By how many standard errors of the profile the lanes' computations take longer.
    double guard = 0;
    double guard_before = 0;   // The guard before this one.
    double excess_before = 0;  // How late choices were with that, in per cent; 0: unknown.
    // A choice that keeps to the prices for so many changes: where the second round may begin.
    // Empty: there is none, or it was not looked for yet.
    std::vector<int> along = {};
    bool has_along = false;  // It was looked for.
    // In place of `correction` where the lanes have groups: [group], see NoiseGroups.
    std::vector<double> bias = {};
  };
  void SetGuard(double errors);
  // By how much all lanes are longer for one standard error of the profile, in per cent, with the
  // replay at a choice.
  double PercentOfGuard(const std::vector<int>& knobs, double guard);
  bool LearnGuard(double excess_percent, const std::vector<int>& knobs, Level* level);
  void LearnBias(const Verdict& verdict, const std::vector<int>& knobs, Level* level);
  // `unused_percent`: of the time that the lanes accept, by the choice that was judged.
  void Learn(const Verdict& verdict, double unused_percent, const std::vector<int>& knobs,
             Level* level);
  bool TryAll(const std::function<bool(double share, bool better)>& progress);
  std::vector<int> AlongPrices(const DualBound& dual, int most_changes, double accepted_seconds);
  bool Climb(Level* level, const Level* below, std::int64_t work, std::uint64_t seed, int round);

  const Planner& planner_;
  const CostedPipeline& pipeline_;
  const RobustPlanSpec& spec_;
  const Trials& trials_;
  double slower_percent_;
  double price_of_time_;
  NoiseGroups groups_;
  Samples samples_;
  LaneReplay replay_;
  std::optional<WindowReplay> windows_;  // Where it suits.
  DualBound prices_;
  double lanes_baseline_seconds_ = 0;
  std::vector<Candidate> held_;
  int best_ = -1;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_LADDER_SEARCH_H_
