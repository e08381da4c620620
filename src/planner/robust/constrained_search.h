// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_
#define PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"
#include "plan/grouping.h"
#include "robust/clock_search.h"
#include "robust/ladder_search.h"
#include "robust/lane_replay.h"
#include "robust/trials.h"

namespace perseus::robust {

// Simulated annealing over the clocks of groups that share one.
class RunSearch {
 public:
  // All must outlive it.
  RunSearch(const CostedPipeline& pipeline, const plan::KeptConstraints& kept, LaneReplay* replay,
            std::uint64_t seed);

  // Walks from the replay's present knobs, which keep the constraints. `work`: computations
  // x lanes that may be replayed. Returns the best choice in time that it met; empty where
  // there was none. Leaves the replay at the last.
  std::vector<int> Anneal(const SearchGoal& goal, std::int64_t work, double hot_joules,
                          double cold_joules);

 private:
  void Propose();
  void ProposeGroup(int direction);
  void Set(const std::vector<int>& members, int knob);
  int StepFrom(int table, int knob, int direction);

  const CostedPipeline& pipeline_;
  const plan::KeptConstraints& kept_;
  LaneReplay* replay_;
  Stream stream_;
  std::vector<std::vector<int>> useful_;  // [table]: knobs, ascending.
  std::vector<char> has_option_;          // [table x knobs + knob]
  std::vector<int> knobs_;                // Those of the replay, with the proposal.
  std::vector<KnobChange> proposal_;
  std::vector<KnobChange> undo_;
};

// The search for a plan under conditions where spec.constraints.any(). What it tries keeps the
// constraints, and `search` judges it:
//
//  - plans that know no conditions, for less and less time and with greater and greater
//    margins, each by halving; with one knob for each stage, too, and one for all;
//  - where every computation may have a clock of its own: the search without constraints, on the
//    pipeline with the margin, too;
//  - otherwise: annealing over groups from the best so far. Where changes have a limit, with few
//  first, then with more,
//    each time from the best found so far, as LadderSearch does: what is tried for fewer
//    changes is tried for more, too.
//
// Whatever is tried with less effort is tried with more, too: nothing begins from plans that
// depend on the effort.
class ConstrainedSearch {
 public:
  // All must outlive it. `seconds` and `slower_percent` as for LadderSearch.
  ConstrainedSearch(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                    const plan::KeptConstraints& kept, const Trials& trials, double slower_percent,
                    double price_of_time, LadderSearch* search);

  // An iteration shorter than this waits until then.
  void set_least_seconds(double seconds) { least_seconds_ = seconds; }

  // `progress` gets the share of work done and whether something better was found;
  // false ends the search.
  using Progress = std::function<bool(double share, bool better)>;
  void Run(const Progress& progress);

 private:
  static constexpr std::uint64_t kConstrainedSeed = 0xC0257A;
  // A choice that knows no conditions and holds.
  struct OnPaper {
    std::vector<int> knobs;
    int changes = 0;
    double saving_percent = 0;
  };
  // An annealing with at most so many changes.
  struct Rung {
    int most_changes = 0;
    double share = 1;             // Of the work.
    std::vector<int> knobs = {};  // Where it goes on; empty: there is no choice yet.
    double saving_percent = -std::numeric_limits<double>::infinity();  // The best in the trials,
    std::vector<int> best = {};                                        // and which that was.
    double correction = 0;  // Of the accepted time, in per cent.
    double dearer = 1;      // The price of time.
  };
  double JudgePlan(double seconds, const PlanConstraints& constraints);
  void HalveTheTime(const PlanConstraints& constraints);
  void HalveTheMargin(const PlanConstraints& constraints);
  void OneKnobForAll();
  void TryOnPaper(double effort);
  void SearchAllChoices(const Planner& planner, const Trials& trials, double effort,
                        const Progress& progress);
  void AllKnobs(const Progress& progress);
  Verdict JudgeOnPaper(const std::vector<CostOption>& options);
  bool WalksOnce() const { return !spec_.conditions.max_changes; }
  std::vector<Rung> Rungs() const;
  void Begin(Rung* rung, const Rung* below) const;
  void Walk(Rung* rung, LaneReplay* replay, SearchGoal goal, std::int64_t work, double hot_joules,
            std::uint64_t seed);
  void Anneal(const Progress& progress);
  bool Improved();

  const Planner& planner_;
  const CostedPipeline& pipeline_;
  const double seconds_;
  const RobustPlanSpec& spec_;
  const plan::KeptConstraints& kept_;
  const Trials& trials_;
  const double slower_percent_;
  const double price_of_time_;
  double least_seconds_ = 0;
  LadderSearch* search_;
  double told_ = -1e300;  // The best saving when Improved() was asked.
  bool goes_on_ = true;
  std::function<bool()> asks_;  // Tells the progress; returns whether the search goes on.
  double paper_effort_ = 0;
  // By effort, granularity, time and margin: how late a plan without conditions was.
  std::map<std::tuple<double, int, double, double>, double> late_;
  std::vector<OnPaper> on_paper_;  // The best for their changes.
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_
