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

// Some microbatches of one type of computation, evenly spread over the iteration and
// shifted from rank to rank. In 1F1B backwards whose microbatch rises by one with the rank
// (`slant` 1), and forwards whose falls (-1), lie on no common path: what all ranks do
// slowly there delays the iteration once.
struct Waves {
  ComputationType type = ComputationType::kBackward;
  int slant = 1;
  int count = 0;
};

// [computation]: whether it is part of a wave.
std::vector<char> InWaves(const PipelineDag& dag, const Waves& waves, std::span<const char> ranks);

struct WaveLimits {
  double accepted_seconds = 0;
  double waiting_watts = 0;
  int most_changes = 0;
};

// Rounds prices in waves: changes into them and out of them are free, others have a
// price, and time is as dear as it must be. The best choice within the limits of those
// tried; empty where there is none. Leaves the replay at any.
std::vector<int> BestInWaves(const CostedPipeline& pipeline, const DualBound& dual,
                             const WaveLimits& limits, LaneReplay* replay);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_PATHS_H_
