// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_RELATIVE_COSTS_H_
#define PERSEUS_SRC_TRACE_RELATIVE_COSTS_H_

#include <span>

#include "perseus/costed_pipeline.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "trace/recorded_pipeline.h"

namespace perseus::trace {

struct RelativeCostSpec {
  const Profile* profile = nullptr;  // Must outlive what is made of it.
  double blocking_power_watts = 0;   // Of one GPU.
  int gpus_per_rank = 1;
};

// The stage of the profile whose costs a block of the recorded model gets: first to
// first, last to last, those between in proportion.
int ProfileStage(int block, int blocks, int profile_stages);

// The pipeline with a table for every computation: at the profile's highest clock it takes as
// long as `seconds` says, and slower clocks stretch it as they stretch the profile's.
// Its power at each clock is the profile's. Errors: forward or backward missing in the profile.
Result<CostedPipeline> CostRecorded(const RecordedPipeline& pipeline,
                                    std::span<const double> seconds, const RelativeCostSpec& spec);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_RELATIVE_COSTS_H_
