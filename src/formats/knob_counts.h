// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_KNOB_COUNTS_H_
#define PERSEUS_FORMATS_KNOB_COUNTS_H_

#include "perseus/plan_document.h"

namespace perseus::formats {

// Of one pipeline, all ranks together.
struct KnobCounts {
  int changes = 0;  // Within an iteration: `knob_changes`.
  int back = 0;     // From its end to the start of the next.
  int distinct = 0;
};

// Counted in the plan's computations.
KnobCounts CountKnobs(const PlanDocument& plan);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_KNOB_COUNTS_H_
