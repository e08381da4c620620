// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_PRICE_PATH_H_
#define PERSEUS_ROBUST_PRICE_PATH_H_

#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::robust {

// The knobs of least cost where a second of a computation costs its price and each
// change of clock `change_joules`: for every rank a shortest path along its order.
std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules);

// The same where a change into a computation has a price of its own: [computation].
std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               std::span<const double> change_joules);

// The same with as low a price of changes as leaves at most `most_changes` (counted
// with that from a rank's last computation to its first).
std::vector<int> CheapestKnobsWithin(const CostedPipeline& pipeline, std::span<const double> price,
                                     int most_changes);

// As a limit on changes counts them.
inline int CountChanges(const PipelineDag& dag, std::span<const int> knobs) {
  return CountKnobChanges(dag, knobs)->all();
}

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_PRICE_PATH_H_
