// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_BOUNDS_PRICE_PATH_H_
#define PERSEUS_ROBUST_BOUNDS_PRICE_PATH_H_

#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::robust {

// The cheapest knobs if a second of computation i costs price[i] and each change of clock costs
// `change_joules`. Finds a shortest path along the order of every rank.
std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules);

// The same, but a change of clock before computation i costs change_joules[i].
std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               std::span<const double> change_joules);

// The same, at the lowest price of a change that leaves at most `most_changes`. A change from a
// rank's last computation to its first of the next iteration counts.
std::vector<int> CheapestKnobsWithin(const CostedPipeline& pipeline, std::span<const double> price,
                                     int most_changes);

// Counts changes as Conditions::max_changes does.
inline int CountChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return CountKnobChanges(dag, knobs)->all();
}

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_BOUNDS_PRICE_PATH_H_
