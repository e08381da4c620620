// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_TIMELINE_H_
#define PERSEUS_SRC_REPORT_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::report {

// A plan laid out in time. Ends are rounded like starts, so that computations
// of a rank never overlap by a rounding.
struct Timeline {
  std::vector<std::int64_t> start_ns;  // [computation]
  std::vector<std::int64_t> end_ns;
  std::int64_t iteration_ns = 0;
  std::vector<bool> critical;      // On some longest path.
  std::vector<int> critical_path;  // One longest path, first computation first.
};

Timeline LayOut(const CostedPipeline& pipeline, const Plan& plan);

// "F3", or "F3+B1" where two are fused.
std::string ComputationLabel(const Computation& computation);

// The stages of each rank, ascending.
std::vector<std::vector<int>> StagesOfRanks(const PipelineDag& dag);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_TIMELINE_H_
