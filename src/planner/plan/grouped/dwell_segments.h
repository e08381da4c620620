// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_DWELL_SEGMENTS_H_
#define PERSEUS_PLAN_GROUPED_DWELL_SEGMENTS_H_

#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::plan {

// [rank] The least time not below `dwell_seconds` that holds whole cycles of the rank: what it does
// for one microbatch, with everything at its fastest. Stretches of that length are alike wherever
// forwards and backwards take turns.
std::vector<double> WholeCycles(const CostedPipeline& pipeline, double dwell_seconds);

// Computations in groups, each of which keeps its knob long enough: stretches
// of a rank that last at least `least_seconds` [rank] with everything at its fastest,
// or a whole rank.
//
// [level][group][member]. The first level has a group for each rank. Those of
// the next are parts of them, at first by phase, down to stretches that are as
// short as they may be.
using DwellLevelList = std::vector<std::vector<std::vector<int>>>;
DwellLevelList DwellLevels(const CostedPipeline& pipeline,
                           const std::vector<double>& least_seconds);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_DWELL_SEGMENTS_H_
