// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_KNOB_COUNTS_H_
#define PERSEUS_FORMATS_KNOB_COUNTS_H_

#include "perseus/plan.h"
#include "perseus/plan_document.h"

namespace perseus::formats {

// Counts over all ranks of one pipeline.
struct KnobCounts {
  KnobChanges changes;
  PlanFigures figures;  // Those that are counts: whole numbers.
};

KnobCounts CountKnobs(const PlanDocument& plan);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_KNOB_COUNTS_H_
