// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSE_LAYER_COSTS_H_
#define PERSEUS_ANALYSE_LAYER_COSTS_H_

#include <vector>

#include "analyse/stage_parts.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::analyse {

// The cost of a layer as a share of the stage in which it was measured, and the cost of what the
// first and the last stage have besides layers (embedding, head).
struct LayerCosts {
  std::vector<int> measured_layers;  // Per stage.
  std::vector<StagePart> layer;      // Per stage: one of its layers.
  StagePart first_extra;
  StagePart last_extra;
};

// The cost of a layer is that of its stage divided by its number of layers. In the first and the
// last stage, a layer costs at most as much as one of the neighbouring stage; the rest is the
// extra. Fails if the counts do not fit the profile or if there are fewer than three stages.
Result<LayerCosts> InferLayerCosts(const Profile& profile, const std::vector<int>& layers);

// The partition of the same layers in the same order, at least one a stage,
// whose slowest stage is fastest (forward + backward at the highest clock); of
// equal ones the one that moves the fewest layers.
std::vector<int> BestPartition(const Profile& profile, const LayerCosts& costs);

// The profile of another partition. Precondition: as many layers, none without.
Result<Profile> PartitionedProfile(const Profile& profile, const LayerCosts& costs,
                                   const std::vector<int>& layers);

}  // namespace perseus::analyse

#endif  // PERSEUS_ANALYSE_LAYER_COSTS_H_
