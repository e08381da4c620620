// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSE_STAGE_PARTS_H_
#define PERSEUS_ANALYSE_STAGE_PARTS_H_

#include <array>
#include <vector>

#include "perseus/computation.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::analyse {

inline constexpr std::array kComputationTypes = {
    ComputationType::kForward, ComputationType::kBackward, ComputationType::kBackwardInput,
    ComputationType::kBackwardWeight, ComputationType::kRecompute};
static_assert(kComputationTypes.size() == kNumComputationTypes);

// How much of a measured stage's time and energy.
struct Share {
  double time = 1;
  double energy = 1;
};

// A share of a measured stage, for each type of computation.
struct StagePart {
  int stage = 0;
  std::array<Share, kNumComputationTypes> shares = {};

  Share& Of(ComputationType type) { return shares[static_cast<std::size_t>(type)]; }
  const Share& Of(ComputationType type) const { return shares[static_cast<std::size_t>(type)]; }
};

// A profile whose stages are made of parts of measured ones: at each knob, times,
// energies and spreads (as of measurements that err together) are added. A knob
// or type that one part lacks is left out. Errors, where that leaves too little
// to plan with: no backward, or a single knob where the parts had more.
// Precondition: no list is empty; the stages in each ascend.
Result<Profile> ComposeProfile(const Profile& profile,
                               const std::vector<std::vector<StagePart>>& stages);

// `stages` stages, each of so many neighbours.
// Precondition: `stages` divides profile.num_stages.
Result<Profile> MergeStages(const Profile& profile, int stages);

// As many stages, each the mean of all.
Result<Profile> EvenStages(const Profile& profile);

// Forward + backward of a stage's part (by default all of it) at the highest
// clock.
double PartSeconds(const Profile& profile, const StagePart& part);

}  // namespace perseus::analyse

#endif  // PERSEUS_ANALYSE_STAGE_PARTS_H_
