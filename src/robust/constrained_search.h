// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_
#define PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_

#include <functional>
#include <vector>

#include "perseus/planner.h"
#include "perseus/robust_plan.h"
#include "robust/kept_constraints.h"
#include "robust/ladder_search.h"
#include "robust/trials.h"

namespace perseus::robust {

// The search for a plan under conditions where spec.constraints.any(). What it tries keeps the
// constraints, and `search` judges it:
//
//  - plans that know no conditions, for less and less time and with greater and greater
//    margins, each by halving; of coarser granularities, too, and one knob for all;
//  - where every computation may have a clock of its own: the search without constraints
//    on the pipeline that has lost all but so many knobs;
//  - otherwise, and with few knobs: annealing over groups, or over stretches that keep the
//    dwell, from the best so far.
//
// What is tried does not depend on where the effort ends it.
class ConstrainedSearch {
 public:
  // All must outlive it. `seconds` and `slower_percent` as for LadderSearch.
  ConstrainedSearch(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                    const KeptConstraints& kept, const Trials& trials, double slower_percent,
                    double price_of_time, LadderSearch* search);

  // Where an iteration that is shorter waits, on paper.
  void set_least_seconds(double seconds) { least_seconds_ = seconds; }

  // `progress` gets the share of work done and whether something better was found;
  // false ends the search.
  using Progress = std::function<bool(double share, bool better)>;
  void Run(const Progress& progress);

 private:
  double Judge(const std::vector<CostOption>& options);
  double JudgePlan(double seconds, const PlanConstraints& constraints);
  void HalveTheTime(const PlanConstraints& constraints);
  void HalveTheMargin(const PlanConstraints& constraints);
  void TryStepByStep(const PlanConstraints& constraints);
  void OneKnobForAll();
  void FewKnobs(const Progress& progress);
  void Anneal(const Progress& progress);
  bool Improved();

  const Planner& planner_;
  const CostedPipeline& pipeline_;
  const double seconds_;
  const RobustPlanSpec& spec_;
  const KeptConstraints& kept_;
  const Trials& trials_;
  const double slower_percent_;
  const double price_of_time_;
  double least_seconds_ = 0;
  LadderSearch* search_;
  double told_ = -1e300;  // The best saving when Improved() was asked.
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_CONSTRAINED_SEARCH_H_
