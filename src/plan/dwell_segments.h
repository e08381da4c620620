// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_DWELL_SEGMENTS_H_
#define PERSEUS_PLAN_DWELL_SEGMENTS_H_

#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::plan {

// Computations in groups, each of which keeps its knob long enough: stretches
// of a rank that last at least `dwell_seconds` with everything at its fastest,
// or a whole rank.
//
// [level][group][member]. The first level has a group for each rank. Those of
// the next are parts of them, at first by phase, down to stretches that are as
// short as they may be.
std::vector<std::vector<std::vector<int>>> DwellLevels(const CostedPipeline& pipeline,
                                                       double dwell_seconds);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_DWELL_SEGMENTS_H_
