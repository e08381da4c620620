// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_PATHS_H_
#define PERSEUS_ROBUST_PATHS_H_

#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/bounds.h"
#include "robust/lane_replay.h"

namespace perseus::robust {

// A schedule that ranks keep to: durations that no clocks have need to exist for.
struct Lead {
  std::vector<double> seconds;  // [computation]
  std::vector<double> price;    // [computation], of its time: watts.
};

// The knobs of least cost where time and changes have their prices and being ahead of
// or behind the lead costs `stiffness` x mean energy of a computation x (lateness /
// mean duration)^2, after every computation. Each rank is on its own: a shortest path over
// knobs and latenesses, rounded to a grid only where two of them are compared.
std::vector<int> KnobsAlong(const CostedPipeline& pipeline, const Lead& lead, double change_joules,
                            double stiffness);

// The same with about as low a price of changes as leaves at most `most_changes`, looked
// for from `change_joules` on, which becomes that price. Empty: none was found.
std::vector<int> KnobsAlongWithin(const CostedPipeline& pipeline, const Lead& lead,
                                  double stiffness, int most_changes, double* change_joules);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_PATHS_H_
