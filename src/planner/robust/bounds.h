// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_BOUNDS_H_
#define PERSEUS_ROBUST_BOUNDS_H_

#include <optional>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"
#include "robust/samples.h"

namespace perseus::robust {

// The cheapest knobs if a second of computation i costs price[i] and each change of clock costs
// `change_joules`. Finds a shortest path along the order of every rank.
std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules);

// The same, at the lowest price of a change that leaves at most `most_changes`. A change from a
// rank's last computation to its first of the next iteration counts.
std::vector<int> CheapestKnobsWithin(const CostedPipeline& pipeline, std::span<const double> price,
                                     int most_changes);

// Counts changes as Conditions::max_changes does.
inline int CountChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return CountKnobChanges(dag, knobs)->all();
}

struct DualBound {
  // No choice of knobs whose mean time over the lanes is at most the accepted one
  // has less mean effective energy, to 1e-12 or so of it.
  double effective_joules = 0;
  double price_of_time = 0;     // Watts, of all that a second is worth.
  std::vector<double> price;    // [computation], of its time before noise: watts.
  std::vector<double> seconds;  // [computation]: what it takes, in the mean of the rounds.
  double change_joules = 0;     // Price of a change, where they are limited.
};

// A lower bound by prices of time, whatever they are: paths of every lane,
// each weighted, are prices that computations pay for their time, and then each rank is on
// its own. `latency_seconds` > 0: clocks are called for when computations start and every
// option of every computation lasts longer than a call (precondition: no noise); a
// rank's best clocks are then a shortest path over pairs of clocks. 0: clocks
// come at once. Deterministic; `rounds` of ascent.
DualBound BoundByPrices(const CostedPipeline& pipeline, const Samples& samples,
                        double accepted_seconds, double latency_seconds, int rounds);

// The same where clocks come at once and change at most so often in the mean of the
// rounds: prices that a search can begin from, and no bound.
DualBound PricesForChanges(const CostedPipeline& pipeline, const Samples& samples,
                           double accepted_seconds, int most_changes, int rounds);

// The most that a plan saves whose mean iteration is at most `slower_percent` longer than the
// `baseline`, that of the same conditions: proven without noise, else an estimate.
RobustBound SavingBound(const Planner& planner, const RobustPlanSpec& spec, double slower_percent,
                        const ReplayedFigures& baseline);

// A small pipeline whose changes are limited, and nothing else stands between the plan and what
// becomes of it: searched by branch and bound (plan/change_branch.h).
struct FewChanges {
  std::vector<CostOption> options;  // Empty: none was found.
  // Of one pipeline with waiting: no plan within the limit that ends in time uses less.
  double least_joules = 0;
};

// Nothing where it is not such a case. `accepted_seconds`: the iteration may last so long. Where
// the search does not prove its plan, it also looks at smaller limits, down to one that it proves:
// so a higher limit never gives a worse plan.
std::optional<FewChanges> SearchFewChanges(const Planner& planner, const RobustPlanSpec& spec,
                                           double accepted_seconds);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_BOUNDS_H_
