// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_DAG_PIPELINE_H_
#define PERSEUS_PLANNER_C_DAG_PIPELINE_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/planner_c.h"
#include "perseus/result.h"

namespace perseus::planner_c {

// A graph of operations in the words of the planner: operations are computations, chains of them
// ranks, waiting costs nothing, and option k of a curve is knob k.
struct DagPipeline {
  CostedPipeline pipeline;
  std::vector<int> computation_of;  // [operation]
};

// Errors: missing arrays, sizes and indices out of range, numbers that are not finite or negative
// times, a cycle.
Result<DagPipeline> MakeDagPipeline(const perseus_dag& dag);

}  // namespace perseus::planner_c

#endif  // PERSEUS_PLANNER_C_DAG_PIPELINE_H_
