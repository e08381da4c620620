// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSE_SWEEP_TEXT_H_
#define PERSEUS_ANALYSE_SWEEP_TEXT_H_

#include <string_view>

#include "perseus/analysis.h"
#include "perseus/result.h"

namespace perseus::analyse {

// "microbatches=8,16,32" adds to `sweep`; "schedule=gpipe,1f1b", "stages=...",
// "virtual-stages=...". A value that is there already is not added again.
Result<void> ParseSweep(std::string_view text, SweepSpec* sweep);

}  // namespace perseus::analyse

#endif  // PERSEUS_ANALYSE_SWEEP_TEXT_H_
