// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_STAGE_SAVINGS_H_
#define PERSEUS_SRC_REPORT_STAGE_SAVINGS_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::report {

// The energy that is saved by slowing the computations of one stage. A slower computation replaces
// waiting, so the blocking energy of that waiting is part of the saving: (e - P t) before - (e - P
// t) after. The sum over the stages plus (time before - time after) x total blocking power is
// exactly the plan's saving.
struct StageSavings {
  int stage = 0;
  int rank = 0;
  double forward_joules = 0;
  double backward_joules = 0;  // B, I, W, R, and R with B in one.
  double fused_joules = 0;     // Forward and backward in one, under the forward's stage.
  double busy_seconds_before = 0;
  double busy_seconds_after = 0;
  double forward_clock = 0;   // Mean over time in the plan; numbers only.
  double backward_clock = 0;  // Fused ones count here.

  double total_joules() const { return forward_joules + backward_joules + fused_joules; }
};

// Every stage, ascending.
std::vector<StageSavings> ComputeStageSavings(const CostedPipeline& pipeline, const Plan& baseline,
                                              const Plan& chosen);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_STAGE_SAVINGS_H_
