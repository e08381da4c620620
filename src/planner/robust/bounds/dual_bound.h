// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_BOUNDS_DUAL_BOUND_H_
#define PERSEUS_ROBUST_BOUNDS_DUAL_BOUND_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/replay/samples.h"

namespace perseus::robust {

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

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_BOUNDS_DUAL_BOUND_H_
